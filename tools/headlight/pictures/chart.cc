#include "tools/headlight/pictures/chart.h"

#include <algorithm>

#include "tools/headlight/pictures/chart_parts.h"
#include "tools/headlight/pictures/palette.h"
#include "tools/headlight/pictures/svg_parts.h"
#include "tools/headlight/support/number_text.h"

namespace headlight::program {
namespace {

constexpr double kWidth = 960;
constexpr double kEdge = 20;
constexpr double kGap = 28;  // between panels
constexpr const char* kDark = ".rule{stroke:#9398a8}.halo{stroke:#0a0c11}";

struct LegendEntry {
  ChartLine line;  // its label, series and stroke
  bool bar = false;
};

// What the reader must tell apart, each once.
std::vector<LegendEntry> legend_entries(const Chart& chart) {
  std::vector<LegendEntry> entries;
  const auto add = [&](const std::string& label, const std::string& series, ChartStroke stroke, bool bar) {
    const bool known = std::any_of(entries.begin(), entries.end(),
                                   [&](const LegendEntry& entry) { return entry.line.label == label; });
    if (!known && !label.empty()) entries.push_back({{label, {}, stroke, series}, bar});
  };
  for (const ChartPanel& panel : chart.panels) {
    for (const ChartLine& line : panel.lines) add(line.label, series_of(line), line.stroke, false);
    for (const ChartBars& bars : panel.bars) {
      for (const ChartBar& bar : bars.bars) add(bar.series, bar.series, ChartStroke::line, true);
    }
  }
  return entries;
}

// Moves y below what it wrote.
std::string legend(const std::vector<LegendEntry>& entries, const SeriesList& series, double& y) {
  std::string text;
  double x = kEdge;
  for (const LegendEntry& entry : entries) {
    const double width = 34 + width_of(entry.line.label, 12);
    if (x + width > kWidth - kEdge && x > kEdge) {
      x = kEdge;
      y += 20;
    }
    if (entry.bar) {
      text += format("<rect x=\"%.1f\" y=\"%.1f\" width=\"18\" height=\"10\" rx=\"1.5\" ", x, y - 9) +
              fill_of(series.colour(series_of(entry.line))) + "/>\n";
    } else {
      text += chart_stroke(series, entry.line, format("M%.1f %.1fh20", x, y - 4));
      if (entry.line.stroke != ChartStroke::dashed) text += chart_mark(series, series_of(entry.line), x + 10, y - 4);
    }
    text += svg_text(x + 26, y, 12, "start", kInk, entry.line.label);
    x += width + 20;
  }
  if (!entries.empty()) y += 28;
  return text;
}

double panel_height(const ChartPanel& panel, std::size_t columns) {
  if (!panel.bars.empty()) return bar_panel_height(panel);
  return columns == 1 ? 400 : columns == 2 ? 320 : 300;
}

// Words over the whole width, on as many lines as they need: the first at y, which moves to the last.
std::string remark(const std::string& words, double& y) {
  constexpr double kSize = 12.5, kLine = 17;
  const std::vector<std::string> lines = lines_of(words, kSize, kWidth - 2 * kEdge);
  std::string text;
  for (std::size_t n = 0; n < lines.size(); ++n) {
    if (n > 0) y += kLine;
    text += svg_text(kEdge, y, kSize, "start", kSoft, lines[n]);
  }
  return text;
}

}  // namespace

SeriesList::SeriesList(const Chart& chart) {
  const auto add = [&](const std::string& name) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
  };
  for (const ChartPanel& panel : chart.panels) {
    for (const ChartLine& line : panel.lines) add(series_of(line));
    for (const ChartBars& bars : panel.bars) {
      for (const ChartBar& bar : bars.bars) add(bar.series);
    }
  }
}

std::size_t SeriesList::number(const std::string& name) const {
  return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
}

std::size_t SeriesList::colour(const std::string& name) const {
  return colour_of(static_cast<std::int64_t>(number(name)), static_cast<std::int64_t>(names_.size()));
}

std::string chart_svg(const Chart& chart) {
  const SeriesList series(chart);
  const std::size_t columns = std::clamp<std::size_t>(chart.columns, 1, std::max<std::size_t>(1, chart.panels.size()));
  // Alone on the sheet, lines have room for their own names.
  const bool labelled = columns == 1 && series.size() <= 8;
  const bool bars = std::any_of(chart.panels.begin(), chart.panels.end(),
                                [](const ChartPanel& panel) { return !panel.bars.empty(); });
  double y = kEdge + 14;
  std::string text = svg_text(kEdge, y, 18, "start", std::string(kInk) + " font-weight=\"650\"", chart.title);
  if (!chart.subtitle.empty()) {
    y += 21;
    text += remark(chart.subtitle, y);
  }
  y += 26;
  if (!labelled || bars) text += legend(legend_entries(chart), series, y);
  const double width = (kWidth - 2 * kEdge - kGap * static_cast<double>(columns - 1)) / static_cast<double>(columns);
  for (std::size_t first = 0; first < chart.panels.size(); first += columns) {
    double height = 0;
    for (std::size_t n = first; n < std::min(first + columns, chart.panels.size()); ++n) {
      const ChartPanel& panel = chart.panels[n];
      const Rectangle place{kEdge + static_cast<double>(n - first) * (width + kGap), y, width,
                            panel_height(panel, columns)};
      text += panel.bars.empty() ? line_panel(panel, series, place, labelled) : bar_panel(panel, series, place);
      height = std::max(height, place.height);
    }
    y += height + 24;
  }
  text += remark(chart.note, y);
  return svg_begin(kWidth, y + (chart.note.empty() ? 0 : 18), chart.title, kDark) + text + "</svg>\n";
}

}  // namespace headlight::program
