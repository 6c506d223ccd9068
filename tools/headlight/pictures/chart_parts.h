// The parts that a chart is put together from.
#pragma once

#include <string>
#include <vector>

#include "tools/headlight/pictures/chart.h"

namespace headlight::program {

struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
};

// Every series of a chart, once, in the order in which it appears: that gives it its colour and mark.
class SeriesList {
 public:
  explicit SeriesList(const Chart& chart);
  [[nodiscard]] std::size_t size() const { return names_.size(); }
  [[nodiscard]] std::size_t number(const std::string& name) const;
  [[nodiscard]] std::size_t colour(const std::string& name) const;

 private:
  std::vector<std::string> names_;
};

[[nodiscard]] inline const std::string& series_of(const ChartLine& line) {
  return line.series.empty() ? line.label : line.series;
}

// A mark of the series' shape and colour.
[[nodiscard]] std::string chart_mark(const SeriesList& series, const std::string& name, double x, double y);
// A piece of line as `stroke` draws it.
[[nodiscard]] std::string chart_stroke(const SeriesList& series, const ChartLine& line, const std::string& path);

// A line of soft grey: axes, grids, guides.
[[nodiscard]] std::string chart_rule(double x1, double y1, double x2, double y2, double opacity);

// A panel in `place`, its title and the words of its axes inside. Lines carry their labels where `labelled`.
[[nodiscard]] std::string line_panel(const ChartPanel& panel, const SeriesList& series, const Rectangle& place,
                                     bool labelled);
[[nodiscard]] std::string bar_panel(const ChartPanel& panel, const SeriesList& series, const Rectangle& place);
[[nodiscard]] double bar_panel_height(const ChartPanel& panel);

}  // namespace headlight::program
