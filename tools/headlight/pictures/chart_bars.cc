// A panel of bars, or of dots, from the left; and the marks that all panels share.
#include <algorithm>
#include <cmath>

#include "tools/headlight/pictures/chart_axis.h"
#include "tools/headlight/pictures/chart_parts.h"
#include "tools/headlight/pictures/svg_parts.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/number_text.h"

namespace headlight::program {
namespace {

constexpr double kBar = 13, kBetween = 3, kGroup = 12;
constexpr std::size_t kLabelColumns = 44;

double top_of(const ChartPanel& panel) { return panel.title.empty() ? 6 : 22; }

double rows_of(const ChartPanel& panel) {
  double rows = 0;
  for (const ChartBars& bars : panel.bars) {
    rows += (kBar + kBetween) * static_cast<double>(bars.bars.size()) + kGroup;
  }
  return rows;
}

PlacedAxis axis_of(const ChartPanel& panel, const Rectangle& place) {
  ValueRange range(panel.x.scale);
  double left = 0, right = 0;
  for (const ChartBars& bars : panel.bars) {
    left = std::max(left, width_of(label(bars.label, kLabelColumns), 12));
    for (const ChartBar& bar : bars.bars) {
      for (const double value : {bar.value, bar.low, bar.high}) range.include(value);
      right = std::max(right, width_of(panel.x.text(bar.value), 11));
    }
  }
  const double begin = place.x + std::min(left, 0.5 * place.width) + 10;
  const double end = std::max(begin + 40, place.x + place.width - right - 14);
  return {panel.x, range, begin, end, static_cast<std::size_t>((end - begin) / 60)};
}

// A bar or a dot, its spread, and its value beside it.
std::string draw_bar(const ChartBar& bar, const ChartPanel& panel, const PlacedAxis& axis, const SeriesList& series,
                     double y) {
  const double place = axis.at(bar.value);
  const double middle = y + kBar / 2;
  if (!std::isfinite(place)) return svg_text(axis.begin() + 5, middle + 4, 11, "start", kSoft, "none");
  const auto inside = [&](double value) { return std::clamp(axis.at(value), axis.begin(), axis.end()); };
  const std::size_t colour = series.colour(bar.series);
  const bool length_tells = panel.x.scale == ChartScale::linear && axis.lowest() == 0;
  double beyond = inside(bar.value);
  std::string text;
  if (length_tells) {
    text += format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"1.5\" ", axis.begin(), y,
                   std::max(1.0, beyond - axis.begin()), kBar) +
            fill_of(colour) + "/>\n";
  }
  if (std::isfinite(bar.low) && std::isfinite(bar.high)) {
    // On a bar of any colour the rule needs a rim to be seen.
    if (length_tells) {
      text += format("<path class=\"halo\" stroke=\"#fff\" stroke-width=\"4\" d=\"M%.1f %.1fH%.1f\"/>\n",
                     inside(bar.low), middle, inside(bar.high));
    }
    text += format("<path %s stroke-width=\"%s\" d=\"M%.1f %.1fH%.1f\"/>\n",
                   length_tells ? "class=\"rule\" stroke=\"#6d7080\"" : stroke_of(colour).c_str(),
                   length_tells ? "1.5" : "2", inside(bar.low), middle, inside(bar.high));
    beyond = std::max(beyond, inside(bar.high));
  }
  if (!length_tells) text += chart_mark(series, bar.series, inside(bar.value), middle);
  return text + svg_text(beyond + (length_tells ? 5 : 9), middle + 4, 11, "start", kInk, panel.x.text(bar.value));
}

}  // namespace

std::string chart_rule(double x1, double y1, double x2, double y2, double opacity) {
  return format(
      "<path class=\"rule\" stroke=\"#6d7080\" stroke-width=\"1\" stroke-opacity=\"%.2f\" d=\"M%.1f %.1fL%.1f "
      "%.1f\"/>\n",
      opacity, x1, y1, x2, y2);
}

std::string chart_stroke(const SeriesList& series, const ChartLine& line, const std::string& path) {
  if (line.stroke == ChartStroke::points) return {};
  return "<path fill=\"none\" " + stroke_of(series.colour(series_of(line))) +
         " stroke-width=\"2\" stroke-linejoin=\"round\"" +
         (line.stroke == ChartStroke::dashed ? " stroke-dasharray=\"6 4\"" : "") + " d=\"" + path + "\"/>\n";
}

// Shapes help where colours do not.
std::string chart_mark(const SeriesList& series, const std::string& name, double x, double y) {
  const char* const shapes[] = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
                                "m-3.6-3.6h7.2v7.2h-7.2z",
                                "m0-4.8l4.8 4.8l-4.8 4.8l-4.8-4.8z",
                                "m0-4.8l4.6 8h-9.2z",
                                "m0 4.8l4.6-8h-9.2z",
                                "m-4.5-1.6h3v-3h3v3h3v3h-3v3h-3v-3h-3z"};
  return "<path " + fill_of(series.colour(name)) + format(" d=\"M%.1f %.1f", x, y) +
         shapes[series.number(name) % std::size(shapes)] + "\"/>\n";
}

double bar_panel_height(const ChartPanel& panel) {
  return top_of(panel) + rows_of(panel) + (panel.x.label.empty() ? 26 : 42);
}

std::string bar_panel(const ChartPanel& panel, const SeriesList& series, const Rectangle& place) {
  const PlacedAxis axis = axis_of(panel, place);
  const double top = place.y + top_of(panel);
  const double bottom = top + rows_of(panel);
  std::string text;
  if (!panel.title.empty()) {
    text += svg_text(place.x, place.y + 6, 14, "start", std::string(kInk) + " font-weight=\"650\"", panel.title);
  }
  for (const double tick : axis.ticks()) {
    text += chart_rule(axis.at(tick), top, axis.at(tick), bottom, tick == 0 ? 0.8 : 0.22);
    text += svg_text(axis.at(tick), bottom + 15, 11, "middle", kSoft, panel.x.text(tick));
  }
  if (!panel.x.label.empty()) {
    text += svg_text((axis.begin() + axis.end()) / 2, bottom + 33, 11.5, "middle", kSoft, panel.x.label);
  }
  double y = top + kGroup / 2;
  for (const ChartBars& bars : panel.bars) {
    const double height = (kBar + kBetween) * static_cast<double>(bars.bars.size());
    text +=
        svg_text(axis.begin() - 8, y + (height - kBetween) / 2 + 4, 12, "end", kInk, label(bars.label, kLabelColumns));
    for (const ChartBar& bar : bars.bars) {
      text += draw_bar(bar, panel, axis, series, y);
      y += kBar + kBetween;
    }
    y += kGroup;
  }
  return text;
}

}  // namespace headlight::program
