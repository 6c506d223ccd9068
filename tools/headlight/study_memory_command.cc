// headlight study memory: the longest sequence that trains in a given memory, by method.
#include <memory>
#include <string>

#include "headlight/analysis/attention_cost.h"
#include "tools/headlight/number_text.h"
#include "tools/headlight/process.h"
#include "tools/headlight/study.h"

namespace headlight::program {
namespace {

struct Arguments {
  StudyArguments study;
  std::int64_t budget = std::int64_t{1} << 30;
  std::int64_t head_dim = 32;
  std::int64_t heads = 1;
};

void study_memory(const Arguments& arguments) {
  const Engine engine(arguments.study.engine.options());
  std::string table = "The longest sequence in " + grouped(arguments.budget) + " bytes\n";
  for (const bool unfused : {true, false}) {
    const analysis::AttentionStep step = {
        .method = unfused ? analysis::AttentionMethod::unfused : analysis::AttentionMethod::recomputing,
        .heads = arguments.heads,
        .head_dim = arguments.head_dim,
        .causal = Causal::top_left};
    table += format("  %-12s %12s\n", unfused ? "unfused" : "recomputing",
                    grouped(longest_sequence(engine, step, arguments.budget)).c_str());
  }
  arguments.study.give(table, "{}\n", [] { return std::string(); });
}

}  // namespace

void add_study_memory(CLI::App& study) {
  CLI::App* const command = study.add_subcommand("memory", "The longest sequence that trains in a given memory");
  const auto arguments = std::make_shared<Arguments>();
  arguments->study.add_to(*command);
  command->footer("Example:\n  build/release/headlight study memory --quick");
  command->callback([arguments] { study_memory(*arguments); });
}

}  // namespace headlight::program
