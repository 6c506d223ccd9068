// A matrix whose rows lie `gap` elements apart, in memory between guard pages.
#pragma once

#include <cmath>

#include "support/compare.h"
#include "support/guarded.h"
#include "support/random.h"
#include "support/refusal.h"

namespace headlight::test {

class GuardedRows {
 public:
  // Gaps hold NaN: whoever reads one shows it, whoever writes one is found by gaps_are_untouched().
  GuardedRows(std::int64_t rows, std::int64_t columns, std::int64_t gap, Against side)
      : memory_(rows == 0 ? 0 : (rows - 1) * (columns + gap) + columns, side),
        view_(memory_.data(), {rows, columns}, {columns + gap, 1}) {
    for (std::int64_t n = 0; n + 1 < rows; ++n) {
      for (std::int64_t e = columns; e < columns + gap; ++e) memory_.data()[n * (columns + gap) + e] = std::nanf("");
    }
  }

  GuardedRows& fill(Random& random, float scale = 1.0f) {
    for (std::int64_t n = 0; n < view_.extent(0); ++n) {
      for (std::int64_t e = 0; e < view_.extent(1); ++e) view_(n, e) = scale * random.normal();
    }
    return *this;
  }

  [[nodiscard]] View<float, 2> view() const { return view_; }
  [[nodiscard]] View<const float, 2> const_view() const { return view_; }

  [[nodiscard]] bool gaps_are_untouched() const {
    for (std::int64_t n = 0; n + 1 < view_.extent(0); ++n) {
      for (std::int64_t e = view_.extent(1); e < view_.stride(0); ++e) {
        if (!std::isnan(memory_.data()[n * view_.stride(0) + e])) return false;
      }
    }
    return true;
  }

  // The same numbers in one piece, in another type.
  template <class To>
  [[nodiscard]] Tensor<To, 2> to() const {
    Tensor<To, 2> copy(view_.shape);
    for (std::int64_t n = 0; n < view_.extent(0); ++n) {
      for (std::int64_t e = 0; e < view_.extent(1); ++e) copy(n, e) = static_cast<To>(view_(n, e));
    }
    return copy;
  }

 private:
  Guarded<float> memory_;
  View<float, 2> view_;
};

// Row lengths around every vector width and every multiple of four vectors, and a few long ones.
inline constexpr std::array<std::int64_t, 26> kRowLengths = {0,  1,  2,  3,  4,  5,  7,  8,  9,   15,  16,  17,  31,
                                                             32, 33, 48, 63, 64, 65, 80, 96, 127, 128, 129, 384, 1000};

}  // namespace headlight::test
