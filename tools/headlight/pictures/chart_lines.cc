// A panel of lines over two axes.
#include <algorithm>
#include <cmath>

#include "tools/headlight/pictures/chart_axis.h"
#include "tools/headlight/pictures/chart_parts.h"
#include "tools/headlight/pictures/svg_parts.h"
#include "tools/headlight/support/display_text.h"
#include "tools/headlight/support/number_text.h"

namespace headlight::program {
namespace {

constexpr double kMostLabel = 230;  // room for the names beside the lines
constexpr double kMarkRoom = 14;    // closer than that, marks would be a chain
constexpr double kFar = 1e5;        // pixels; further off, what is cut away need not be told apart

bool has_spread(const ChartPoint& point) { return std::isfinite(point.low) && std::isfinite(point.high); }

// Where both axes lie, and what is drawn between them.
struct Plot {
  PlacedAxis x, y;

  [[nodiscard]] bool shows(const ChartPoint& point) const {
    return std::isfinite(x.at(point.x)) && std::isfinite(y.at(point.y));
  }
  [[nodiscard]] bool reaches(double at_y) const { return at_y >= y.end() - 1e-6 && at_y <= y.begin() + 1e-6; }
  [[nodiscard]] static std::string number(double pixel) { return format("%.1f", std::clamp(pixel, -kFar, kFar)); }
  [[nodiscard]] std::string point(double at_x, double at_y) const {
    return number(x.at(at_x)) + " " + number(y.at(at_y));
  }
  // What is drawn inside and goes beyond the axes is cut.
  [[nodiscard]] std::string cut(const std::string& drawn) const {
    constexpr double kStroke = 1;  // half of a line's width: one that runs along an axis is whole
    const double width = x.end() - x.begin() + 2 * kStroke, height = y.begin() - y.end() + 2 * kStroke;
    return format("<svg x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" viewBox=\"%.1f %.1f %.1f %.1f\">\n",
                  x.begin() - kStroke, y.end() - kStroke, width, height, x.begin() - kStroke, y.end() - kStroke, width,
                  height) +
           drawn + "</svg>\n";
  }
};

ValueRange range_of(const ChartPanel& panel, bool horizontal) {
  ValueRange range(horizontal ? panel.x.scale : panel.y.scale);
  for (const ChartLine& line : panel.lines) {
    for (const ChartPoint& point : line.points) {
      for (const double value :
           {horizontal ? point.x : point.y, horizontal ? point.x : point.low, horizontal ? point.x : point.high}) {
        range.include(value);
      }
    }
  }
  // A limit is no limit when it cannot be seen.
  for (const ChartGuide& guide : panel.guides) {
    if (!horizontal && guide.power == 0) range.include(guide.y);
  }
  return range;
}

Plot place_axes(const ChartPanel& panel, const Rectangle& place, bool labelled) {
  const double top = place.y + (panel.title.empty() ? 0 : 20) + (panel.y.label.empty() ? 8 : 22);
  const double bottom = place.y + place.height - (panel.x.label.empty() ? 26 : 42);
  const PlacedAxis y(panel.y, range_of(panel, false), bottom, top, static_cast<std::size_t>((bottom - top) / 30));
  double left = 0;
  for (const double tick : y.ticks()) left = std::max(left, width_of(panel.y.text(tick), 11));
  double right = 14;
  for (const ChartLine& line : panel.lines) {
    if (labelled) right = std::max(right, std::min(kMostLabel, 16 + width_of(line.label, 12)));
  }
  const double begin = place.x + left + 8;
  const double end = std::max(begin + 40, place.x + place.width - right);
  const ValueRange range = range_of(panel, true);
  // As many ticks as can be read beside each other; where the widest text stands is known only then.
  std::size_t most = static_cast<std::size_t>((end - begin) / 36);
  for (;; --most) {
    PlacedAxis x(panel.x, range, begin, end, most);
    double widest = 0;
    for (const double tick : x.ticks()) widest = std::max(widest, width_of(panel.x.text(tick), 11));
    bool fits = true;
    for (std::size_t n = 1; n < x.ticks().size(); ++n) {
      fits = fits && x.at(x.ticks()[n]) - x.at(x.ticks()[n - 1]) >= widest + 8;
    }
    if (fits || most <= 2) return {x, y};
  }
}

std::string draw_axes(const ChartPanel& panel, const Plot& plot, const Rectangle& place) {
  std::string text;
  if (!panel.title.empty()) {
    text += svg_text(place.x, place.y + 6, 14, "start", std::string(kInk) + " font-weight=\"650\"", panel.title);
  }
  for (const double tick : plot.y.ticks()) {
    const double y = plot.y.at(tick);
    text += chart_rule(plot.x.begin(), y, plot.x.end(), y, 0.22);
    text += svg_text(plot.x.begin() - 6, y + 4, 11, "end", kSoft, panel.y.text(tick));
  }
  text += chart_rule(plot.x.begin(), plot.y.begin(), plot.x.end(), plot.y.begin(), 0.8);
  for (const double tick : plot.x.ticks()) {
    const double x = plot.x.at(tick);
    text += chart_rule(x, plot.y.begin(), x, plot.y.begin() + 5, 0.8);
    text += svg_text(x, plot.y.begin() + 18, 11, "middle", kSoft, panel.x.text(tick));
  }
  if (!panel.y.label.empty()) text += svg_text(place.x, plot.y.end() - 10, 11.5, "start", kSoft, panel.y.label);
  if (!panel.x.label.empty()) {
    text += svg_text((plot.x.begin() + plot.x.end()) / 2, plot.y.begin() + 36, 11.5, "middle", kSoft, panel.x.label);
  }
  return text;
}

// As far as it runs between the axes, and its name where it leaves them.
struct DrawnGuide {
  std::string line, name;
};

DrawnGuide draw_guide(const ChartGuide& guide, const Plot& plot) {
  constexpr int kSteps = 200;
  std::string path;
  double last_x = 0, last_y = 0;
  for (int step = 0; step <= kSteps; ++step) {
    const double share = static_cast<double>(step) / kSteps;
    const double pixel = plot.x.begin() + share * (plot.x.end() - plot.x.begin());
    // The value at this place: an axis is straight in value or in logarithm.
    const double straight = plot.x.lowest() + share * (plot.x.highest() - plot.x.lowest());
    const double curved = plot.x.lowest() * std::pow(plot.x.highest() / plot.x.lowest(), share);
    const double value = std::abs(plot.x.at(straight) - pixel) < 1e-6 ? straight : curved;
    const double y = plot.y.at(guide.y * std::pow(value / guide.x, guide.power));
    if (!plot.reaches(y)) continue;
    path += format(path.empty() ? "M%.1f %.1f" : "L%.1f %.1f", pixel, y);
    last_x = pixel;
    last_y = y;
  }
  if (path.empty()) return {};
  const std::string line =
      "<path class=\"rule\" fill=\"none\" stroke=\"#6d7080\" stroke-width=\"1.2\" stroke-dasharray=\"2 4\" d=\"" +
      path + "\"/>\n";
  const bool room_behind = last_x + 8 + width_of(guide.label, 11.5) < plot.x.end();
  if (room_behind) return {line, svg_text(last_x + 8, last_y + 10, 11.5, "start", kSoftOverLines, guide.label)};
  return {line, svg_text(last_x - 6, last_y - 6, 11.5, "end", kSoftOverLines, guide.label)};
}

// The spread of a line: a band where it is drawn as a line, whiskers where it is points.
std::string draw_spread(const ChartLine& line, const Plot& plot, const SeriesList& series) {
  std::string text, there, back;
  for (const ChartPoint& point : line.points) {
    if (!plot.shows(point) || !has_spread(point)) continue;
    if (line.stroke == ChartStroke::points) {
      text += "<path " + stroke_of(series.colour(series_of(line))) + " stroke-width=\"1.5\" d=\"M" +
              plot.point(point.x, point.low) + "L" + plot.point(point.x, point.high) + "\"/>\n";
    }
    there += (there.empty() ? "M" : "L") + plot.point(point.x, point.high);
    back.insert(0, "L" + plot.point(point.x, point.low));
  }
  if (line.stroke == ChartStroke::points || there.empty()) return text;
  return "<path " + fill_of(series.colour(series_of(line))) + " fill-opacity=\"0.16\" d=\"" + there + back + "z\"/>\n";
}

struct DrawnLine {
  std::string path, marks;
};

DrawnLine draw_line(const ChartLine& line, const Plot& plot, const SeriesList& series) {
  const bool marked = line.stroke == ChartStroke::points ||
                      (line.stroke == ChartStroke::line &&
                       kMarkRoom * static_cast<double>(line.points.size()) <= plot.x.end() - plot.x.begin());
  std::string path, marks;
  bool gap = true;
  for (const ChartPoint& point : line.points) {
    if (!plot.shows(point)) {
      gap = true;
      continue;
    }
    path += (gap ? "M" : "L") + plot.point(point.x, point.y);
    gap = false;
    if (marked && plot.reaches(plot.y.at(point.y))) {
      marks += chart_mark(series, series_of(line), plot.x.at(point.x), plot.y.at(point.y));
    }
  }
  return {path.empty() ? path : chart_stroke(series, line, path), marks};
}

// A triangle under the axis wherever a line leaves through it, or comes back: what lies below has a value all the same.
std::string draw_exits(const ChartPanel& panel, const ChartLine& line, const Plot& plot, const SeriesList& series) {
  std::string text;
  const ChartPoint* last = nullptr;
  const double floor = plot.y.begin() + 1e-6;
  for (const ChartPoint& point : line.points) {
    if (!plot.shows(point)) {
      last = nullptr;
      continue;
    }
    const double y = plot.y.at(point.y), before = last == nullptr ? y : plot.y.at(last->y);
    if ((before > floor) != (y > floor)) {
      const double from = plot.x.at(last->x), to = plot.x.at(point.x);
      const double x = from + (to - from) * (plot.y.begin() - before) / (y - before);
      text += "<path " + fill_of(series.colour(series_of(line))) +
              format(" d=\"M%.1f %.1fh8l-4 6z\">", x - 4, plot.y.begin() + 1) + "<title>below " +
              escaped(panel.y.text(plot.y.lowest())) + "</title></path>\n";
    }
    last = &point;
  }
  return text;
}

struct Name {
  const ChartLine* line;
  double x, y;      // where the line ends
  double left, at;  // where its name begins, and how high it stands
  double right = left + width_of(line->label, 12);
};

// Names beside the ends of their lines, moved down where they would lie over each other.
std::vector<Name> place_names(const ChartPanel& panel, const Plot& plot) {
  constexpr double kApart = 15;
  constexpr double kNear = 40;  // of the right edge: these stand in one column
  std::vector<Name> names;
  for (const ChartLine& line : panel.lines) {
    const auto last = std::find_if(line.points.rbegin(), line.points.rend(), [&](const ChartPoint& point) {
      return plot.shows(point) && plot.reaches(plot.y.at(point.y));
    });
    if (last == line.points.rend()) continue;
    const double x = plot.x.at(last->x), y = plot.y.at(last->y);
    names.push_back({&line, x, y, x > plot.x.end() - kNear ? plot.x.end() + 13 : x + 13, y});
  }
  std::stable_sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.y < b.y; });
  for (auto name = names.begin(); name != names.end(); ++name) {
    for (auto above = names.begin(); above != name; ++above) {
      if (above->left < name->right && name->left < above->right) name->at = std::max(name->at, above->at + kApart);
    }
  }
  // Back up where the lowest would stand below the axis.
  double below = plot.y.begin() + kApart;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (name->left < plot.x.end()) continue;
    below = name->at = std::min(name->at, below - kApart);
  }
  return names;
}

std::string draw_labels(const ChartPanel& panel, const Plot& plot, const SeriesList& series) {
  std::string text;
  for (const Name& name : place_names(panel, plot)) {
    if (name.left - name.x > 14 || name.at > name.y + 1) {
      text +=
          "<path fill=\"none\" " + stroke_of(series.colour(series_of(*name.line))) +
          format(" stroke-opacity=\"0.5\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", name.x + 5, name.y, name.left - 3, name.at);
    }
    text += svg_text(name.left, name.at + 4, 12, "start", kInk, name.line->label);
  }
  return text;
}

}  // namespace

std::string line_panel(const ChartPanel& panel, const SeriesList& series, const Rectangle& place, bool labelled) {
  const Plot plot = place_axes(panel, place, labelled);
  std::string text = draw_axes(panel, plot, place);
  std::string names, spreads, lines, marks;
  for (const ChartGuide& guide : panel.guides) {
    const DrawnGuide drawn = draw_guide(guide, plot);
    text += drawn.line;
    names += drawn.name;
  }
  for (const ChartLine& line : panel.lines) spreads += draw_spread(line, plot, series);
  for (const ChartLine& line : panel.lines) {
    const DrawnLine drawn = draw_line(line, plot, series);
    lines += drawn.path;
    marks += drawn.marks;
    if (line.stroke != ChartStroke::points) marks += draw_exits(panel, line, plot, series);
  }
  if (lines.empty() && marks.empty()) {
    return text + names +
           svg_text((plot.x.begin() + plot.x.end()) / 2, (plot.y.begin() + plot.y.end()) / 2, 13, "middle", kSoft,
                    "no values");
  }
  return text + plot.cut(spreads + lines) + marks + names + (labelled ? draw_labels(panel, plot, series) : "");
}

}  // namespace headlight::program
