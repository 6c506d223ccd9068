// The report as JSON, for programs: every row with its figures and peers, latencies, losses and goals.
#pragma once

#include <nlohmann/json.hpp>

#include "report/markdown.h"

namespace headlight::bench::report {

[[nodiscard]] nlohmann::json json_report(const PageInput& input);

}  // namespace headlight::bench::report
