#include "tools/headlight/studies/study.h"

#include "tools/headlight/support/output.h"
#include "tools/headlight/support/validators.h"

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

}  // namespace headlight::program
