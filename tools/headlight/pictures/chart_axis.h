// An axis of a chart: from which value to which it goes, where values lie on it, and its ticks.
#pragma once

#include <vector>

#include "tools/headlight/pictures/chart.h"

namespace headlight::program {

// What the values of a chart reach from and to.
class ValueRange {
 public:
  explicit ValueRange(ChartScale scale) : scale_(scale) {}

  // Whether an axis of this scale has a place for it.
  [[nodiscard]] bool takes(double value) const;
  void include(double value);
  [[nodiscard]] bool empty() const { return !(least_ <= most_); }
  [[nodiscard]] double least() const { return least_; }
  [[nodiscard]] double most() const { return most_; }

 private:
  ChartScale scale_;
  double least_ = std::numeric_limits<double>::infinity(), most_ = -std::numeric_limits<double>::infinity();
};

class PlacedAxis {
 public:
  // From `begin` to `end` in pixels, with at most `most_ticks` ticks. An empty range gives an axis all the same.
  PlacedAxis(const ChartAxis& axis, const ValueRange& range, double begin, double end, std::size_t most_ticks);

  [[nodiscard]] double at(double value) const;
  [[nodiscard]] double begin() const { return begin_; }
  [[nodiscard]] double end() const { return end_; }
  [[nodiscard]] double lowest() const { return lowest_; }
  [[nodiscard]] double highest() const { return highest_; }
  [[nodiscard]] const std::vector<double>& ticks() const { return ticks_; }

 private:
  void choose_linear(const ChartAxis& axis, const ValueRange& range, std::size_t most_ticks);
  void choose_logarithmic(const ChartAxis& axis, const ValueRange& range, std::size_t most_ticks);

  ChartScale scale_;
  double begin_, end_, lowest_ = 0, highest_ = 1;
  std::vector<double> ticks_;
};

}  // namespace headlight::program
