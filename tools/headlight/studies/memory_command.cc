// headlight study memory: the longest sequence that trains in a given memory, by method.
#include <memory>
#include <string>

#include "tools/headlight/studies/memory.h"
#include "tools/headlight/studies/study.h"
#include "tools/headlight/support/byte_count.h"
#include "tools/headlight/support/progress.h"

namespace headlight::program {
namespace memory_study {
namespace {

struct Arguments {
  StudyArguments study;
  MemoryStudyOptions options;
  std::string budget;
  std::string run;  // of a child: the method
  std::int64_t length = 0;
};

// What a child process does for the study.
void run_child(const Arguments& arguments) {
  using analysis::AttentionMethod;
  run_memory_step({.method = arguments.run == "unfused" ? AttentionMethod::unfused : AttentionMethod::recomputing,
                   .length = arguments.length,
                   .heads = arguments.options.heads,
                   .head_dim = arguments.options.head_dim,
                   .causal = Causal::top_left,
                   .gradient_over_out = arguments.run == "over-out"},
                  arguments.study.engine);
}

void study_memory(Arguments& arguments) {
  if (!arguments.run.empty()) return run_child(arguments);
  MemoryStudyOptions& options = arguments.options;
  options.quick = arguments.study.quick;
  if (!arguments.budget.empty()) {
    options.budget = *parse_bytes(arguments.budget);
  } else if (options.quick) {
    options.budget = kQuickBudget;
  }
  Progress progress(options.measure ? memory_study_runs(options) : 1);
  const MemoryStudy study = run_memory_study(options, arguments.study.engine, [&] { progress.advance(1); });
  progress.clear();
  arguments.study.give(memory_table(study), memory_json(study), [&] { return memory_chart(study); });
}

void add_hidden(Command& command, Arguments& arguments) {
  command.add_option("--run", arguments.run).check(one_of({"unfused", "recomputing", "over-out"})).hidden();
  command.add_option("--length", arguments.length).check(between(0, std::int64_t{1} << 40)).hidden();
}

}  // namespace
}  // namespace memory_study

void add_study_memory(Command& study) {
  using namespace memory_study;
  Command command = study.add_subcommand("memory", "The longest sequence that trains in a given memory");
  const auto arguments = std::make_shared<Arguments>();
  command
      .add_option("--budget", arguments->budget,
                  "Memory for one pass forward and backward (default: 1GiB, with --quick 32MiB)")
      .type_name("BYTES")
      .check(expected_bytes);
  command.add_option("--head-dim", arguments->options.head_dim, "Width of a head, 1 to 1024 (default: 32)")
      .type_name("D")
      .check(between(1, 1024));
  command.add_option("--heads", arguments->options.heads, "Heads, 1 to 1024 (default: 1)")
      .type_name("H")
      .check(between(1, 1024));
  command.add_flag("--measure", arguments->options.measure,
                   "Run it, each pass in a process of its own, and read what was resident at most");
  command.add_flag("--over-out", arguments->options.over_out,
                   "Also measure recomputing with the query's gradient written over the output");
  arguments->study.add_to(command);
  add_hidden(command, *arguments);
  command.example("--quick --measure --svg memory.svg",
                  "With --measure some minutes, and a good many of them for the last run of a large budget.");
  command.callback([arguments] { study_memory(*arguments); });
}

}  // namespace headlight::program
