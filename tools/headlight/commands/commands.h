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
#include "headlight/row_shards.h"
#include "tools/headlight/support/command.h"

namespace headlight::demonstration {
class Steps;
struct TrainingOptions;
}  // namespace headlight::demonstration

namespace headlight::program {

// Which of the two lengths of a call the tensor [B, L, H, D] has.
enum class RowsOf { queries, keys };

// The rows of queries and of keys that a process holds of a call; of a tensor it has them one behind another.
struct AttentionRows {
  std::vector<RowRun> queries, keys;
};

// Who computes what `attend` writes, where that is not this process alone: several, each of which runs the command and
// holds some rows of each tensor.
class AttentionCalls {
 public:
  virtual ~AttentionCalls() = default;
  // Options of its own.
  virtual void add_to(Command& command) = 0;
  // All have come.
  virtual void begin() = 0;
  // All can go on, or one of them has a problem, which is not empty then and for which all fail.
  virtual void agree(const std::string& problem) = 0;
  // What this process holds of a call: without asking the others.
  virtual AttentionRows plan(const AttentionShape& whole, const AttentionOptions& options) = 0;
  // As the engine's functions, all processes together, each with the rows that it holds.
  virtual void attention(Engine& engine, const View<const float, 4>& query, const View<const float, 4>& key,
                         const View<const float, 4>& value, const View<float, 4>& out,
                         const AttentionOptions& options) = 0;
  virtual void attention_backward(Engine& engine, const View<const float, 4>& query, const View<const float, 4>& key,
                                  const View<const float, 4>& value, const View<const float, 4>& out,
                                  const View<const float, 3>& log_sum_exp, const View<const float, 4>& out_gradient,
                                  const AttentionGradients& gradients, const AttentionOptions& options) = 0;
  // The largest that any process has: all of them call it, and one, which tells(), is told.
  [[nodiscard]] virtual double largest(double here) = 0;
  // Write the file of the whole, all processes together: [B, L, H, D] from the rows held, and log_sum_exp [B, H, L].
  virtual void write(const std::string& path, const View<const float, 4>& rows, RowsOf of) = 0;
  virtual void write(const std::string& path, const View<const float, 3>& sums) = 0;
  // Whether this process writes what all of them have alike, and says what has been written.
  [[nodiscard]] virtual bool tells() const = 0;
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
void add_rerank(Command& program);
void add_tokenize(Command& program);
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
