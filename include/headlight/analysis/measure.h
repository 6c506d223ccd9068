// A number that may have no value, and then says why.
#pragma once

#include <cstdint>
#include <string_view>

#include "headlight/export.h"

namespace headlight::analysis {

// Why a measure has no value.
enum class Undefined : std::uint8_t {
  none,          // it has one
  no_rows,       // nothing was added
  too_few_rows,  // fewer rows than the measure needs
  constant,      // a head gives the same in every row: similarity to it has no meaning
  zero,          // a vector or matrix of zeros has no direction; a head that sees nothing looks nowhere
  even,          // no weight of a row is larger than the others, in any row
  not_weights,   // rows went in that are no attention weights: negative, or summing to something else than 1
  not_finite     // a NaN or an infinity went in
};

// "the head's output is constant"
[[nodiscard]] HEADLIGHT_API std::string_view describe(Undefined why) noexcept;

// A value, which is always finite, or the reason why there is none. A NaN or infinity becomes Undefined::not_finite.
class HEADLIGHT_API Measure {
 public:
  Measure() = default;
  // From a value, and from a reason; without either there are no rows.
  Measure(double value) noexcept;                 // NOLINT(runtime/explicit)
  Measure(Undefined why) noexcept : why_(why) {}  // NOLINT(runtime/explicit)

  // Whether there is a value, and why not.
  [[nodiscard]] bool has_value() const noexcept { return why_ == Undefined::none; }
  [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }
  [[nodiscard]] Undefined why() const noexcept { return why_; }
  // The value; `otherwise` where there is none.
  [[nodiscard]] double value_or(double otherwise) const noexcept { return has_value() ? value_ : otherwise; }
  // Throws std::logic_error that says why there is none.
  [[nodiscard]] double value() const;

 private:
  double value_ = 0;
  Undefined why_ = Undefined::no_rows;
};

}  // namespace headlight::analysis
