// The study of memory: which lengths, what the ledger says of them, and what child processes then measure.
#include "tools/headlight/studies/memory.h"

#include <algorithm>
#include <string_view>

namespace headlight::program {
namespace {

using analysis::AttentionMethod;
using analysis::AttentionStep;

// Of a length that is nearly the longest there is still room: a page at the end of each tensor, and what the program
// itself holds differs by a few of them from run to run.
constexpr std::int64_t kMargin = std::int64_t{1} << 20;
// The search for the longest sequence ends after so many runs, or when one took as long as this.
constexpr int kSearchRuns = 6;
constexpr int kQuickSearchRuns = 3;
constexpr double kLongRun = 30;  // seconds
constexpr std::int64_t kShortest = 1000;

std::vector<MemoryMethod> methods_of(const MemoryStudyOptions& options) {
  const AttentionStep step = {.heads = options.heads, .head_dim = options.head_dim, .causal = Causal::top_left};
  std::vector<MemoryMethod> methods(2);
  const std::string heads = options.heads == 1 ? "" : " H";
  methods[0] = {.name = "unfused",
                .formula = (options.heads == 1 ? std::string("8 L²") : std::string("4 (H + threads) L²")) +
                           " + (32 D + 4) L" + heads,
                .step = step};
  methods[0].step.method = AttentionMethod::unfused;
  methods[1] = {.name = "recomputing", .formula = "(32 D + 8) L" + heads, .step = step};
  if (options.over_out) {
    methods.push_back({.name = "recomputing, dq over out", .formula = "(28 D + 8) L" + heads, .step = step});
    methods.back().step.gradient_over_out = true;
  }
  return methods;
}

MemoryPoint point_of(const Engine& engine, AttentionStep step, std::int64_t length) {
  step.length = length;
  return {.length = length, .bytes = attention_step_bytes(engine, step), .flops = attention_step_flops(step).all()};
}

int search_runs(const MemoryStudyOptions& options) { return options.quick ? kQuickSearchRuns : kSearchRuns; }

class Search {
 public:
  Search(const MemoryStudyOptions& options, const EngineArguments& arguments, const Engine& engine,
         const std::function<void()>& advance)
      : options_(options), arguments_(arguments), engine_(engine), advance_(advance) {}

  std::optional<MemoryRun> measure(AttentionStep step, std::int64_t length) const {
    step.length = length;
    std::optional<MemoryRun> run = measure_memory_step(step, arguments_, options_.budget);
    advance_();
    return run;
  }

  // The longest that was run and did not hold more than the budget: one of `lengths`, or what is found from what the
  // ledger foretells on, by halves of what is open between a length that fits and one that does not.
  [[nodiscard]] MemoryPoint longest(const AttentionStep& step, std::int64_t foretold,
                                    const std::vector<MemoryPoint>& lengths) const {
    MemoryPoint best = point_of(engine_, step, 0);
    for (const MemoryPoint& point : lengths) {
      if (point.run && point.run->peak <= options_.budget) best = point;
    }
    std::int64_t too_long = foretold + foretold / 8 + 2, tried = foretold;
    for (int runs = 0; runs < search_runs(options_) && tried > best.length && tried < too_long; ++runs) {
      const std::optional<MemoryRun> run = measure(step, tried);
      const std::int64_t spare = run ? options_.budget - run->peak : -options_.budget / 64;
      // What a position more costs here says how many there is room for, or how many were too many. What a run holds
      // differs by some pages from the next: after one that held too much, more than twice of that is left free.
      const std::int64_t more = (spare < 0 ? 2 * spare - kMargin : spare) / cost_of_position(step, tried);
      if (spare < 0) {
        too_long = tried;
      } else {
        best = point_of(engine_, step, tried);
        best.run = run;
        if (more <= tried / 1000 || run->seconds > kLongRun) break;
      }
      tried = std::max(std::min(tried + more - (more < 0 ? 1 : 0), too_long - 1), best.length + 1);
    }
    return best;
  }

 private:
  [[nodiscard]] std::int64_t cost_of_position(AttentionStep step, std::int64_t length) const {
    constexpr std::int64_t kStep = 64;
    return std::max<std::int64_t>(
        1, (point_of(engine_, step, length + kStep).bytes.all() - point_of(engine_, step, length).bytes.all()) / kStep);
  }

  const MemoryStudyOptions& options_;
  const EngineArguments& arguments_;
  const Engine& engine_;
  const std::function<void()>& advance_;
};

// Lengths for the chart, each twice the one before, as long as a run takes seconds.
std::vector<std::int64_t> lengths_of(const MemoryStudyOptions& options) {
  std::vector<std::int64_t> lengths;
  const std::int64_t longest = options.quick ? 8 * kShortest / 2 : 64 * kShortest;
  for (std::int64_t length = options.quick ? kShortest / 2 : kShortest; length <= longest; length *= 2) {
    lengths.push_back(length);
  }
  return lengths;
}

// Of a length that is told: the run that there was, or what the longest run says of it.
void tell_seconds(const MemoryMethod& method, MemoryPoint& point) {
  const MemoryPoint* longest = nullptr;
  const auto look_at = [&](const MemoryPoint& other) {
    if (!other.run) return;
    if (other.length == point.length) point.run = other.run;
    if (longest == nullptr || other.length > longest->length) longest = &other;
  };
  for (const MemoryPoint& other : method.lengths) look_at(other);
  look_at(method.longest);
  if (point.run || longest == nullptr || longest->flops == 0) return;
  point.extrapolated = longest->run->seconds * point.flops / longest->flops;
}

}  // namespace

std::size_t memory_study_runs(const MemoryStudyOptions& options) {
  return 1 + methods_of(options).size() * (lengths_of(options).size() + static_cast<std::size_t>(search_runs(options)));
}

MemoryStudy run_memory_study(const MemoryStudyOptions& options, const EngineArguments& arguments,
                             const std::function<void()>& advance) {
  const Engine engine(arguments.options());
  MemoryStudy study{.options = options,
                    .threads = engine.threads(),
                    .isa = std::string(name(engine.isa())),
                    .methods = methods_of(options)};
  const Search search(options, arguments, engine, advance);
  if (options.measure) {
    const std::optional<MemoryRun> nothing = search.measure(study.methods.back().step, 0);
    if (nothing) study.program = nothing->peak;
  }
  for (MemoryMethod& method : study.methods) {
    const std::int64_t margin = options.measure ? kMargin : 0;
    method.foretold = longest_sequence(engine, method.step, options.budget - study.program - margin);
    method.longest = point_of(engine, method.step, method.foretold);
    for (const std::int64_t length : lengths_of(options)) {
      MemoryPoint point = point_of(engine, method.step, length);
      const bool fits = point.bytes.all() + study.program <= options.budget;
      if (options.measure && fits) point.run = search.measure(method.step, length);
      method.lengths.push_back(point);
    }
    if (options.measure) method.longest = search.longest(method.step, method.foretold, method.lengths);
    for (const std::int64_t length : {kShortest, 100 * kShortest}) {
      method.told.push_back(point_of(engine, method.step, length));
      tell_seconds(method, method.told.back());
    }
  }
  return study;
}

}  // namespace headlight::program
