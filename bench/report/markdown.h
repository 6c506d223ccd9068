// The report as a page of Markdown.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "report/rows.h"

namespace headlight::bench::report {

struct PageInput {
  const Measured& measured;
  nlohmann::json goals = nlohmann::json::array();
  // Why a case loses: {"suite/case or the beginning of it": "a sentence"}.
  nlohmann::json reasons = nlohmann::json::object();
  // Which suite's pictures: title and path, relative to the page. "latency" for those of latencies.
  std::vector<std::pair<std::string, std::string>> charts{};
  // What was run and how: "quick".
  std::string note{};
};

[[nodiscard]] std::string markdown_page(const PageInput& input);

}  // namespace headlight::bench::report
