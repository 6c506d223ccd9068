// Pictures as SVG, without a ground of their own: their colours are of middle brightness and read on white and on
// black.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace headlight::bench::report {

struct Bar {
  std::string series;
  double share;  // 1 is the limit
};

struct BarGroup {
  std::string label;
  std::vector<Bar> bars;
};

// Horizontal bars in groups; the axis ends at 100 %, or where the longest bar does.
[[nodiscard]] std::string bar_chart(const std::string& title, const std::vector<BarGroup>& groups);

struct Curve {
  std::string label;
  std::vector<std::pair<double, double>> buckets;  // lower end in seconds, calls
};

// How many of the calls took how long, both axes logarithmic, so that the one call in 100,000 is seen too.
[[nodiscard]] std::string histogram_chart(const std::string& title, const std::vector<Curve>& curves);

}  // namespace headlight::bench::report
