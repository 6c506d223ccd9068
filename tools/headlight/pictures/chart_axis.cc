#include "tools/headlight/pictures/chart_axis.h"

#include <algorithm>
#include <cmath>

namespace headlight::program {
namespace {

double given_or(double given, double otherwise) { return std::isfinite(given) ? given : otherwise; }

// No less than `least`.
double round_step(ChartSteps steps, double least) {
  if (steps == ChartSteps::binary) return std::exp2(std::ceil(std::log2(least) - 1e-9));
  if (steps == ChartSteps::whole) least = std::max(least, 1.0);
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= least * (1 - 1e-9)) return digit * power;
  }
  return 10 * power;
}

// Ticks between 1-2-5 steps of every decade, every decade, every second one …, as many as there is room for.
std::vector<double> decimal_ticks(double lowest, double highest, std::size_t most) {
  const int first = static_cast<int>(std::floor(std::log10(lowest) - 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(highest) + 1e-9));
  std::vector<double> ticks;
  for (int step = 0; step == 0 || ticks.size() > most; ++step) {
    ticks.clear();
    for (int power = first; power <= last; ++power) {
      if (step > 0 && power % step != 0) continue;
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double tick = digit * std::pow(10.0, power);
        if (tick >= lowest * (1 - 1e-9) && tick <= highest * (1 + 1e-9)) ticks.push_back(tick);
        if (step > 0) break;
      }
    }
  }
  return ticks;
}

// Powers of two, every one of them, every second …; 2^10 apart, the units of bytes are among them.
std::vector<double> binary_ticks(double lowest, double highest, std::size_t most) {
  const int first = static_cast<int>(std::ceil(std::log2(lowest) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log2(highest) + 1e-9));
  std::vector<double> ticks;
  for (const int step : {1, 2, 5, 10, 20, 50, 100}) {
    ticks.clear();
    for (int power = first; power <= last; ++power) {
      if (power % step == 0) ticks.push_back(std::ldexp(1.0, power));
    }
    if (ticks.size() <= most) break;
  }
  return ticks;
}

}  // namespace

bool ValueRange::takes(double value) const {
  return std::isfinite(value) && (scale_ == ChartScale::linear || value > 0);
}

void ValueRange::include(double value) {
  if (!takes(value)) return;
  least_ = std::min(least_, value);
  most_ = std::max(most_, value);
}

PlacedAxis::PlacedAxis(const ChartAxis& axis, const ValueRange& range, double begin, double end, std::size_t most_ticks)
    : scale_(axis.scale), begin_(begin), end_(end) {
  most_ticks = std::max<std::size_t>(most_ticks, 2);
  scale_ == ChartScale::linear ? choose_linear(axis, range, most_ticks) : choose_logarithmic(axis, range, most_ticks);
}

// Ends that are not given lie on ticks.
void PlacedAxis::choose_linear(const ChartAxis& axis, const ValueRange& range, std::size_t most_ticks) {
  lowest_ = given_or(axis.lowest, range.empty() ? 0 : std::min(0.0, range.least()));
  highest_ = given_or(axis.highest, range.empty() ? 1 : std::max(0.0, range.most()));
  if (!(highest_ > lowest_)) highest_ = lowest_ + 1;
  const double step = round_step(axis.steps, (highest_ - lowest_) / static_cast<double>(most_ticks - 1));
  const double first = std::isfinite(axis.lowest) ? std::ceil(lowest_ / step - 1e-9) : std::floor(lowest_ / step);
  const double last = std::isfinite(axis.highest) ? std::floor(highest_ / step + 1e-9) : std::ceil(highest_ / step);
  for (double tick = first; tick <= last; ++tick) ticks_.push_back(tick * step);
  if (!std::isfinite(axis.lowest)) lowest_ = first * step;
  if (!std::isfinite(axis.highest)) highest_ = last * step;
}

// Ends that are not given lie a little beyond the values, and so far apart that there are ticks between them.
void PlacedAxis::choose_logarithmic(const ChartAxis& axis, const ValueRange& range, std::size_t most_ticks) {
  const double least = range.empty() ? 1 : range.least();
  const double most = range.empty() ? 10 : range.most();
  constexpr double kNarrowest = 5;
  const double margin = std::max(std::pow(most / least, 0.04), std::sqrt(kNarrowest * least / most));
  lowest_ = axis.lowest > 0 ? axis.lowest : least / margin;
  highest_ = axis.highest > 0 ? axis.highest : most * margin;
  if (!(highest_ > lowest_)) highest_ = 10 * lowest_;
  if (scale_ == ChartScale::binary) ticks_ = binary_ticks(lowest_, highest_, most_ticks);
  if (ticks_.size() < 2) ticks_ = decimal_ticks(lowest_, highest_, most_ticks);
}

double PlacedAxis::at(double value) const {
  const double share = scale_ == ChartScale::linear
                           ? (value - lowest_) / (highest_ - lowest_)
                           : (std::log(value) - std::log(lowest_)) / (std::log(highest_) - std::log(lowest_));
  return begin_ + (end_ - begin_) * share;
}

}  // namespace headlight::program
