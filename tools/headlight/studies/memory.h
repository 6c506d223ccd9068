// headlight study memory: what a sequence costs to train on, by method, foretold and measured.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headlight/analysis/attention_cost.h"
#include "tools/headlight/support/engine_arguments.h"

namespace headlight::program {

// What --quick gives to a pass where nobody says otherwise.
inline constexpr std::int64_t kQuickBudget = std::int64_t{32} << 20;

struct MemoryStudyOptions {
  std::int64_t budget = std::int64_t{1} << 30;
  std::int64_t head_dim = 32;
  std::int64_t heads = 1;
  bool measure = false;
  bool quick = false;
  // Beside the recomputing pass another one whose query gradient lies over its output.
  bool over_out = false;
};

// One pass forward and backward, run in a process of its own.
struct MemoryRun {
  std::int64_t peak = 0;  // bytes: the most that was resident in it, the program and all (VmHWM)
  double seconds = 0;     // a short one's are the best of some, in the same process
};

// A length of a method. `bytes` is the ledger's, without what the program itself takes.
struct MemoryPoint {
  std::int64_t length = 0;
  analysis::AttentionStepBytes bytes{};
  double flops = 0;
  std::optional<MemoryRun> run{};
  // Where it was not run itself: seconds of the longest that was, times the operations that this one has more.
  std::optional<double> extrapolated{};
};

struct MemoryMethod {
  std::string name;
  std::string formula;  // bytes of a head, with L and D
  analysis::AttentionStep step{};
  std::int64_t foretold = 0;           // the longest, by the ledger
  MemoryPoint longest{};               // the same, or where it was run, what fitted
  std::vector<MemoryPoint> lengths{};  // ascending, each twice the one before
  std::vector<MemoryPoint> told{};     // what 1,000 and 100,000 positions cost
};

struct MemoryStudy {
  MemoryStudyOptions options;
  int threads = 1;
  std::string isa;
  std::int64_t program = 0;  // bytes that the program itself holds; 0: not measured
  std::vector<MemoryMethod> methods;
};

// `advance` is called after each of so many runs as memory_study_runs() says at most.
[[nodiscard]] MemoryStudy run_memory_study(const MemoryStudyOptions& options, const EngineArguments& engine,
                                           const std::function<void()>& advance);
[[nodiscard]] std::size_t memory_study_runs(const MemoryStudyOptions& options);

// The table, the document and the chart of it.
[[nodiscard]] std::string memory_table(const MemoryStudy& study);
[[nodiscard]] std::string memory_json(const MemoryStudy& study);
[[nodiscard]] std::string memory_chart(const MemoryStudy& study);

// One step here and now, and a line for the process that asked: peak bytes and seconds.
void run_memory_step(const analysis::AttentionStep& step, const EngineArguments& engine);
// The same in a child process that may hold so many bytes; nothing where it could not have them. Throws
// std::runtime_error when the child fails in another way.
[[nodiscard]] std::optional<MemoryRun> measure_memory_step(const analysis::AttentionStep& step,
                                                           const EngineArguments& engine, std::int64_t most_bytes);

}  // namespace headlight::program
