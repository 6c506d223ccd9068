#include <functional>

#include "tools/headlight/commands.h"
#include "tools/headlight/output.h"
#include "tools/headlight/study.h"
#include "tools/headlight/validators.h"

namespace headlight::program {

void StudyArguments::add_to(Command& command) {
  command.add_option("--json", json, "Write everything as one JSON document; - prints it alone")
      .type_name("FILE")
      .check(file_name())
      .check(ends_in(".json", "a JSON document"))
      .writes();
  command.add_option("--svg", svg, "Write the chart; - prints it alone")
      .type_name("FILE")
      .check(apart_from("--json", json))
      .check(ends_in(".svg", "an SVG picture"))
      .writes();
  command.add_flag("--quick", quick, "Seconds instead of minutes: smaller sizes, and the table says so");
  engine.add_to(command);
}

void StudyArguments::give(const std::string& table, const std::string& document,
                          const std::function<std::string()>& chart) const {
  print_report(write_files({{svg, chart, "the chart"}, {json, [&] { return document; }, "everything as JSON"}}), table);
}

void add_study(Command& program) {
  Command command = program.add_subcommand("study", "What a choice costs and what it buys, measured here");
  command.require_subcommand();
  command.example("memory --quick", "Each study has its own --help.");
  add_study_memory(command);
  add_study_chunk(command);
  add_study_depth(command);
  add_study_heads(command);
  add_study_merge(command);
  add_study_diversity(command);
  add_study_relations(command);
}

}  // namespace headlight::program
