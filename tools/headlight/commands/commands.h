// The subcommands: each adds itself to the program, with its options, its help and what it does when it is chosen.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headlight/attention_backward.h"
#include "headlight/parameters.h"
#include "tools/headlight/support/command.h"

namespace headlight::demonstration {
class Steps;
struct TrainingOptions;
}  // namespace headlight::demonstration

namespace headlight::program {

// Who computes what `attend` writes, where that is not the engine alone: several processes that each have all inputs.
class AttentionCalls {
 public:
  virtual ~AttentionCalls() = default;
  // Options of its own.
  virtual void add_to(Command& command) = 0;
  // Before the first call: all have their inputs, or one could not read its own, for which all then fail.
  virtual void begin(const std::string& problem) = 0;
  // As the engine's functions; results are whole where writes() says so.
  virtual void attention(Engine& engine, const View<const float, 4>& query, const View<const float, 4>& key,
                         const View<const float, 4>& value, const View<float, 4>& out,
                         const AttentionOptions& options) = 0;
  virtual void attention_backward(Engine& engine, const View<const float, 4>& query, const View<const float, 4>& key,
                                  const View<const float, 4>& value, const View<const float, 4>& out,
                                  const View<const float, 3>& log_sum_exp, const View<const float, 4>& out_gradient,
                                  const AttentionGradients& gradients, const AttentionOptions& options) = 0;
  // Whether this process writes the files and tells of them.
  [[nodiscard]] virtual bool writes() const = 0;
};

// Who trains together, where that is not this process alone: several, each of which runs the command.
class TrainingRanks {
 public:
  virtual ~TrainingRanks() = default;
  // Options of its own.
  virtual void add_to(Command& command) = 0;
  // All have come.
  virtual void begin() = 0;
  // All go on, and say the same: names and values. Where one has given up, all fail here, or wherever they wait.
  virtual void agree(const std::vector<std::pair<std::string, std::string>>& record) = 0;
  // This one cannot go on. Throws what all of them end with; returns where they know already.
  virtual void give_up(const std::exception& problem) = 0;
  // Whether any says so.
  [[nodiscard]] virtual bool any(bool here) = 0;
  [[nodiscard]] virtual std::unique_ptr<demonstration::Steps> make_steps(
      std::vector<Parameter> parameters, const demonstration::TrainingOptions& options) = 0;
};

void add_info(Command& program);
// Without `calls`: by the engine, or another method that is asked for.
void add_attend(Command& program, const std::shared_ptr<AttentionCalls>& calls = nullptr);
void add_encode(Command& program);
void add_embed(Command& program);
void add_convert(Command& program);
void add_demo(Command& program);
void add_beams(Command& program);
void add_heads(Command& program);
void add_presets(Command& program);
// Without `ranks`: by this process.
void add_train(Command& program, const std::shared_ptr<TrainingRanks>& ranks = nullptr);
void add_study(Command& program);
void add_speed(Command& program);

// The program with all of them: does what the arguments ask for, its own name first, says on standard error what went
// wrong, and returns the exit code.
[[nodiscard]] int run(int count, char** arguments);

// A program with other commands, which says what went wrong by `tell`.
struct ProgramParts {
  std::string description;
  std::function<void(Command& commands)> add_commands;
  void (*tell)(std::string_view message) noexcept;
};
[[nodiscard]] int run(const ProgramParts& parts, int count, char** arguments);

}  // namespace headlight::program
