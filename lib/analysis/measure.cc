#include "headlight/analysis/measure.h"

#include <cmath>
#include <stdexcept>
#include <string>

namespace headlight::analysis {

std::string_view describe(Undefined why) noexcept {
  switch (why) {
    case Undefined::none:
      return "defined";
    case Undefined::no_rows:
      return "no rows to look at";
    case Undefined::too_few_rows:
      return "too few rows";
    case Undefined::constant:
      return "the output is the same in every row";
    case Undefined::zero:
      return "all zeros";
    case Undefined::even:
      return "no weight is larger than the others";
    case Undefined::not_weights:
      return "weights below 0, or rows that do not sum to 1, went in";
    case Undefined::not_finite:
      return "a NaN or an infinity went in";
  }
  return "";
}

Measure::Measure(double value) noexcept
    : value_(std::isfinite(value) ? value : 0), why_(std::isfinite(value) ? Undefined::none : Undefined::not_finite) {}

double Measure::value() const {
  if (!has_value()) throw std::logic_error("the measure is undefined: " + std::string(describe(why_)));
  return value_;
}

}  // namespace headlight::analysis
