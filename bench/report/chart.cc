#include "report/chart.h"

#include <algorithm>
#include <cmath>

#include "report/svg.h"
#include "report/text.h"

namespace headlight::bench::report {
namespace {

constexpr double kWidth = 800;

// As many lines as it takes; returns where the next thing may begin.
double draw_legend(Svg& svg, const std::vector<std::pair<std::string, std::string>>& entries, double y) {
  double x = 16;
  for (const auto& [label, colour] : entries) {
    const double width = 30 + 7.2 * static_cast<double>(label.size());
    if (x + width > kWidth) {
      x = 16;
      y += 20;
    }
    svg.rectangle(x, y - 9, 10, 10, colour);
    svg.text(x + 15, y, label);
    x += width;
  }
  return y + 18;
}

// 10^power seconds: "10 µs".
std::string decade_text(int power) {
  const char* const units[] = {"s", "ms", "µs", "ns"};
  int unit = 0;
  for (; power < 0 && unit < 3; ++unit) power += 3;
  return format("%g ", std::pow(10, power)) + units[unit];
}

std::vector<std::pair<std::string, std::string>> series_of(const std::vector<BarGroup>& groups) {
  std::vector<std::pair<std::string, std::string>> series;
  for (const BarGroup& group : groups) {
    for (const Bar& bar : group.bars) {
      const std::pair<std::string, std::string> entry(bar.series, colour_of(bar.series));
      if (std::find(series.begin(), series.end(), entry) == series.end()) series.push_back(entry);
    }
  }
  return series;
}

}  // namespace

std::string bar_chart(const std::string& title, const std::vector<BarGroup>& groups) {
  constexpr double kBar = 12;
  constexpr double kGap = 12;
  constexpr double kLeft = 240;
  constexpr double kRight = kWidth - 70;
  const auto series = series_of(groups);
  double rows = 0;
  double limit = 1;
  for (const BarGroup& group : groups) {
    rows += (kBar + 2) * static_cast<double>(group.bars.size()) + kGap;
    for (const Bar& bar : group.bars) limit = std::max(limit, bar.share);
  }
  const double legend_lines = 1 + std::floor(static_cast<double>(series.size()) / 5);
  Svg svg(kWidth, 60 + 20 * legend_lines + rows, title);
  svg.text(16, 22, title, Anchor::start, true);
  const double top = draw_legend(svg, series, 44);
  const double scale = (kRight - kLeft) / limit;
  for (const double tick : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    svg.rule(kLeft + tick * scale, top, kLeft + tick * scale, top + rows);
    svg.text(kLeft + tick * scale, top + rows + 14, format("%.0f %%", 100 * tick), Anchor::middle);
  }
  double y = top + kGap / 2;
  for (const BarGroup& group : groups) {
    const double height = (kBar + 2) * static_cast<double>(group.bars.size());
    svg.text(kLeft - 8, y + height / 2 + 4, group.label, Anchor::end);
    for (const Bar& bar : group.bars) {
      svg.rectangle(kLeft, y, std::max(1.0, bar.share * scale), kBar, colour_of(bar.series));
      svg.text(kLeft + bar.share * scale + 5, y + kBar - 2, format("%.0f %%", 100 * bar.share));
      y += kBar + 2;
    }
    y += kGap;
  }
  return svg.finish();
}

namespace {

// What the curves of a histogram span.
struct Span {
  double shortest = 1e9, longest = 0;  // seconds
  double rarest = 1;                   // share of a curve's calls
};

double calls_of(const Curve& curve) {
  double calls = 0;
  for (const auto& [seconds, count] : curve.buckets) calls += count;
  return calls;
}

Span span_of(const std::vector<Curve>& curves) {
  Span span;
  for (const Curve& curve : curves) {
    const double calls = calls_of(curve);
    if (calls > 0) span.rarest = std::min(span.rarest, 1 / calls);
    for (const auto& [seconds, count] : curve.buckets) {
      span.shortest = std::min(span.shortest, seconds);
      span.longest = std::max(span.longest, seconds);
    }
  }
  return span;
}

// Seconds by decades to the right, shares by decades down.
class DecadeAxes {
 public:
  DecadeAxes(const Span& span, double top)
      : top_(top),
        first_(std::floor(std::log10(span.shortest))),
        last_(std::max(first_ + 1, std::ceil(std::log10(span.longest * 1.13)))),
        depth_(std::max(1.0, std::ceil(-std::log10(span.rarest)))) {}

  [[nodiscard]] double x_of(double seconds) const {
    return kLeft + (kRight - kLeft) * (std::log10(seconds) - first_) / (last_ - first_);
  }
  [[nodiscard]] double y_of(double share) const {
    return share <= 0 ? top_ + kHeight : top_ + kHeight * std::min(1.0, -std::log10(share) / (depth_ + 0.3));
  }
  void draw(Svg& svg) const {
    for (double decade = first_; decade <= last_; ++decade) {
      const double x = x_of(std::pow(10, decade));
      svg.rule(x, top_, x, top_ + kHeight);
      svg.text(x, top_ + kHeight + 16, decade_text(static_cast<int>(decade)),
               decade == last_ ? Anchor::end : Anchor::middle);
    }
    for (double power = 0; power <= depth_; ++power) {
      const double y = y_of(std::pow(10, -power));
      svg.rule(kLeft, y, kRight, y);
      svg.text(kLeft - 6, y + 4, format("%g %%", 100 * std::pow(10, -power)), Anchor::end);
    }
  }

 private:
  static constexpr double kLeft = 70, kRight = kWidth - 20, kHeight = 220;
  double top_, first_, last_, depth_;
};

// A piece of line for each run of buckets that calls fell into.
void draw_curve(Svg& svg, const DecadeAxes& axes, const Curve& curve, const std::string& colour) {
  const double width = std::pow(10.0, 1.0 / 20), calls = calls_of(curve);
  std::string points;
  double end = 0;
  const auto add = [&](double seconds, double share) {
    points += format("%.1f,", axes.x_of(seconds)) + format("%.1f ", axes.y_of(share));
  };
  const auto finish = [&] {
    if (points.empty()) return;
    add(end, 0);
    svg.polyline(points, colour);
    points.clear();
  };
  for (const auto& [seconds, count] : curve.buckets) {
    if (seconds > end * 1.001) {
      finish();
      add(seconds, 0);
    }
    add(seconds, count / calls);
    end = seconds * width;
    add(end, count / calls);
  }
  finish();
}

}  // namespace

std::string histogram_chart(const std::string& title, const std::vector<Curve>& curves) {
  const char* const colours[] = {"#e08a1e", "#3d86c6", "#d6546f", "#9a6cc7"};
  std::vector<std::pair<std::string, std::string>> entries;
  for (const Curve& curve : curves) entries.emplace_back(curve.label, colours[entries.size() % std::size(colours)]);
  Svg svg(kWidth, 340, title);
  svg.text(16, 22, title, Anchor::start, true);
  const double top = draw_legend(svg, entries, 44) + 6;
  const Span span = span_of(curves);
  if (span.longest == 0) return svg.finish();
  const DecadeAxes axes(span, top);
  axes.draw(svg);
  for (std::size_t i = 0; i < curves.size(); ++i) draw_curve(svg, axes, curves[i], entries[i].second);
  return svg.finish();
}

}  // namespace headlight::bench::report
