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

std::string histogram_chart(const std::string& title, const std::vector<Curve>& curves) {
  constexpr double kLeft = 70;
  constexpr double kRight = kWidth - 20;
  constexpr double kHeight = 220;
  const char* const colours[] = {"#e08a1e", "#3d86c6", "#d6546f", "#9a6cc7"};
  double shortest = 1e9;
  double longest = 0;
  double rarest = 1;
  std::vector<std::pair<std::string, std::string>> entries;
  std::vector<double> totals;
  for (const Curve& curve : curves) {
    double calls = 0;
    for (const auto& [seconds, count] : curve.buckets) {
      calls += count;
      shortest = std::min(shortest, seconds);
      longest = std::max(longest, seconds);
    }
    totals.push_back(calls);
    if (calls > 0) rarest = std::min(rarest, 1 / calls);
    entries.emplace_back(curve.label, colours[entries.size() % std::size(colours)]);
  }
  Svg svg(kWidth, 340, title);
  svg.text(16, 22, title, Anchor::start, true);
  const double top = draw_legend(svg, entries, 44) + 6;
  if (longest == 0) return svg.finish();
  const double first = std::floor(std::log10(shortest));
  const double last = std::max(first + 1, std::ceil(std::log10(longest * 1.13)));
  const double depth = std::max(1.0, std::ceil(-std::log10(rarest)));
  const auto x_of = [&](double seconds) {
    return kLeft + (kRight - kLeft) * (std::log10(seconds) - first) / (last - first);
  };
  const auto y_of = [&](double share) {
    return share <= 0 ? top + kHeight : top + kHeight * std::min(1.0, -std::log10(share) / (depth + 0.3));
  };
  for (double decade = first; decade <= last; ++decade) {
    svg.rule(x_of(std::pow(10, decade)), top, x_of(std::pow(10, decade)), top + kHeight);
    svg.text(x_of(std::pow(10, decade)), top + kHeight + 16, decade_text(static_cast<int>(decade)),
             decade == last ? Anchor::end : Anchor::middle);
  }
  for (double power = 0; power <= depth; ++power) {
    svg.rule(kLeft, y_of(std::pow(10, -power)), kRight, y_of(std::pow(10, -power)));
    svg.text(kLeft - 6, y_of(std::pow(10, -power)) + 4, format("%g %%", 100 * std::pow(10, -power)), Anchor::end);
  }
  const double step = std::pow(10.0, 1.0 / 20);
  for (std::size_t i = 0; i < curves.size(); ++i) {
    // A piece of line for each run of buckets that calls fell into.
    std::string points;
    double end = 0;
    const auto add = [&](double seconds, double share) {
      points += format("%.1f,", x_of(seconds)) + format("%.1f ", y_of(share));
    };
    const auto finish = [&] {
      if (points.empty()) return;
      add(end, 0);
      svg.polyline(points, entries[i].second);
      points.clear();
    };
    for (const auto& [seconds, count] : curves[i].buckets) {
      if (seconds > end * 1.001) {
        finish();
        add(seconds, 0);
      }
      add(seconds, count / totals[i]);
      end = seconds * step;
      add(end, count / totals[i]);
    }
    finish();
  }
  return svg.finish();
}

}  // namespace headlight::bench::report
