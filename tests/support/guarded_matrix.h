// A matrix of any stored type whose rows lie `gap` numbers apart, in memory between guard pages.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gtest/gtest.h"
#include "headlight/typed_view.h"
#include "support/guarded.h"
#include "support/random.h"
#include "support/stored.h"

namespace headlight::test {

class GuardedMatrix {
 public:
  // Normal numbers; what lies between rows is marked, for gaps_are_untouched().
  GuardedMatrix(NumberType type, std::int64_t rows, std::int64_t columns, std::int64_t gap, Against side,
                Random& random)
      : numbers_(rows == 0 ? 0 : (rows - 1) * (columns + gap) + columns),
        memory_(numbers_ * static_cast<std::int64_t>(bytes_of(type)), side),
        view_(type, memory_.data(), {rows, columns}, {columns + gap, 1}) {
    for (std::int64_t n = 0; n < numbers_; ++n) put(memory_.data(), n, is_gap(n) ? kMark : random.normal(), type);
  }

  [[nodiscard]] MutableTypedView<2> view() const { return view_; }
  [[nodiscard]] TypedView<2> const_view() const { return view_; }
  [[nodiscard]] NumberType type() const { return view_.type; }

  void set(std::int64_t row, std::int64_t column, float value) {
    put(memory_.data(), row * view_.stride(0) + column, value, view_.type);
  }
  [[nodiscard]] float at(std::int64_t row, std::int64_t column) const {
    return get(memory_.data(), row * view_.stride(0) + column, view_.type);
  }
  // The numbers, in one piece, exactly.
  template <class To = float>
  [[nodiscard]] Tensor<To, 2> to() const {
    Tensor<To, 2> copy(view_.shape);
    for (std::int64_t n = 0; n < view_.extent(0); ++n) {
      for (std::int64_t e = 0; e < view_.extent(1); ++e) copy(n, e) = static_cast<To>(at(n, e));
    }
    return copy;
  }

  // Whether it holds those numbers, each rounded to its type, to the bit; any NaN for a NaN.
  [[nodiscard]] testing::AssertionResult holds(const Tensor<float, 2>& expected) const {
    if (!gaps_are_untouched()) return testing::AssertionFailure() << "wrote between the rows";
    for (std::int64_t n = 0; n < view_.extent(0); ++n) {
      for (std::int64_t e = 0; e < view_.extent(1); ++e) {
        const float wanted = rounded_to(view_.type, expected(n, e)), found = at(n, e);
        if (std::isnan(wanted) && std::isnan(found)) continue;
        if (std::memcmp(&wanted, &found, sizeof wanted) == 0) continue;
        return testing::AssertionFailure() << "(" << n << ", " << e << ") is " << found << ", expected " << wanted;
      }
    }
    return testing::AssertionSuccess();
  }

  [[nodiscard]] bool gaps_are_untouched() const {
    for (std::int64_t n = 0; n < numbers_; ++n) {
      if (is_gap(n) && get(memory_.data(), n, view_.type) != kMark) return false;
    }
    return true;
  }

 private:
  static constexpr float kMark = 5.0f;
  [[nodiscard]] bool is_gap(std::int64_t n) const { return n % view_.stride(0) >= view_.extent(1); }

  std::int64_t numbers_;
  Guarded<std::byte> memory_;
  MutableTypedView<2> view_;
};

}  // namespace headlight::test
