// How close is close: errors over norms, never over single elements, and bits where bits are promised.
//
// A row is what the last axis holds. Where the truth is not finite, the other side must show the same NaN or infinity,
// and the element counts in no norm.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "gtest/gtest.h"
#include "headlight/tensor.h"

namespace headlight::test {

// 2⁻²⁴: half the distance from 1 to the next float.
inline constexpr double kUnitRoundoff = 0x1p-24;

// Calls f(index of the row, one entry for each axis, the last 0; offset of its first element in a; in b), row by row.
template <class A, class B, int Rank, class Function>
void for_each_row(const View<A, Rank>& a, const View<B, Rank>& b, Function f) {
  constexpr auto kRank = static_cast<std::size_t>(Rank);
  typename View<A, Rank>::Shape index{};
  for (std::size_t axis = 0; axis < kRank; ++axis) {
    if (a.shape[axis] == 0) return;
  }
  while (true) {
    std::int64_t offset_a = 0;
    std::int64_t offset_b = 0;
    for (std::size_t axis = 0; axis + 1 < kRank; ++axis) {
      offset_a += index[axis] * a.strides[axis];
      offset_b += index[axis] * b.strides[axis];
    }
    f(index, offset_a, offset_b);
    int axis = Rank - 2;
    while (axis >= 0 && ++index[static_cast<std::size_t>(axis)] == a.extent(axis)) {
      index[static_cast<std::size_t>(axis--)] = 0;
    }
    if (axis < 0) return;
  }
}

template <class Shape>
std::string shown(const Shape& index) {
  std::string text = "[";
  for (const std::int64_t i : index) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(i);
  }
  return text + "]";
}

// The Euclidean norm of the finite elements of a row.
template <class T>
double row_norm(const T* row, std::int64_t length, std::int64_t stride) {
  double squares = 0;
  for (std::int64_t d = 0; d < length; ++d) {
    const auto element = static_cast<double>(row[d * stride]);
    if (std::isfinite(element)) squares += element * element;
  }
  return std::sqrt(squares);
}

// The worst row of `actual`: its largest element error over the norm of the same row of `yardstick`. A row of zeros
// there allows no error; where the truth is NaN or infinite and `actual` is not the same, the error is infinite.
struct RowError {
  double error = 0;
  std::string where;  // "[b, i, h, d]: actual … truth …"
};

template <class Actual, class Truth, class Yardstick, int Rank>
RowError worst_row_error(const View<Actual, Rank>& actual, const View<Truth, Rank>& truth,
                         const View<Yardstick, Rank>& yardstick) {
  RowError worst;
  const std::int64_t length = truth.extent(Rank - 1);
  for_each_row(actual, truth, [&](auto index, std::int64_t offset_actual, std::int64_t offset_truth) {
    double largest = 0;
    for (std::int64_t d = 0; d < length; ++d) {
      const auto a = static_cast<double>(actual.data[offset_actual + d * actual.stride(Rank - 1)]);
      const auto t = static_cast<double>(truth.data[offset_truth + d * truth.stride(Rank - 1)]);
      const bool same = a == t || (std::isnan(a) && std::isnan(t));
      double error = same ? 0 : std::abs(a - t);
      if (!same && (!std::isfinite(a) || !std::isfinite(t))) error = std::numeric_limits<double>::infinity();
      if (error > largest) {
        largest = error;
        index[static_cast<std::size_t>(Rank - 1)] = d;
      }
    }
    if (largest == 0) return;
    std::int64_t offset = 0;
    for (std::size_t axis = 0; axis + 1 < static_cast<std::size_t>(Rank); ++axis) {
      offset += index[axis] * yardstick.strides[axis];
    }
    const double error = largest / row_norm(yardstick.data + offset, length, yardstick.stride(Rank - 1));
    if (error <= worst.error) return;
    const std::int64_t d = index[static_cast<std::size_t>(Rank - 1)];
    worst.error = error;
    worst.where = shown(index) + ": actual " +
                  std::to_string(actual.data[offset_actual + d * actual.stride(Rank - 1)]) + ", truth " +
                  std::to_string(truth.data[offset_truth + d * truth.stride(Rank - 1)]);
  });
  return worst;
}

template <class Actual, class Truth, int Rank>
RowError worst_row_error(const View<Actual, Rank>& actual, const View<Truth, Rank>& truth) {
  return worst_row_error(actual, truth, truth);
}

// Every element within tolerance · ‖its row of the yardstick‖, which is the true row unless given.
template <class Actual, class Truth, class Yardstick, int Rank>
testing::AssertionResult within(const View<Actual, Rank>& actual, const View<Truth, Rank>& truth, double tolerance,
                                const View<Yardstick, Rank>& yardstick) {
  if (actual.shape != truth.shape || actual.shape != yardstick.shape) {
    return testing::AssertionFailure() << "shape " << shown(actual.shape) << ", expected " << shown(truth.shape);
  }
  const RowError worst = worst_row_error(actual, truth, yardstick);
  if (worst.error <= tolerance) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "error " << worst.error << " of the row's norm, allowed " << tolerance
                                     << ", at " << worst.where;
}

template <class Actual, class Truth, int Rank>
testing::AssertionResult within(const View<Actual, Rank>& actual, const View<Truth, Rank>& truth, double tolerance) {
  return within(actual, truth, tolerance, truth);
}

// The promise on accuracy: with e the worst row error of the plain float32 computation over the whole case, every row
// of `actual` errs by at most 2e + 8u. The yardstick of a row is the true row; another one is for rows of a few
// elements, whose norm may be nothing but what a cancellation left.
template <class Actual, class Plain, class Truth, class Yardstick, int Rank>
testing::AssertionResult at_most_twice_the_plain_error(const View<Actual, Rank>& actual, const View<Plain, Rank>& plain,
                                                       const View<Truth, Rank>& truth,
                                                       const View<Yardstick, Rank>& yardstick) {
  const double plain_error = worst_row_error(plain, truth, yardstick).error;
  return within(actual, truth, 2 * plain_error + 8 * kUnitRoundoff, yardstick)
         << " (plain float32: " << plain_error << ")";
}

template <class Actual, class Plain, class Truth, int Rank>
testing::AssertionResult at_most_twice_the_plain_error(const View<Actual, Rank>& actual, const View<Plain, Rank>& plain,
                                                       const View<Truth, Rank>& truth) {
  return at_most_twice_the_plain_error(actual, plain, truth, truth);
}

// The same bits everywhere, −0 and NaN payloads included.
template <class A, class B, int Rank>
testing::AssertionResult same_bits(const View<A, Rank>& a, const View<B, Rank>& b) {
  static_assert(sizeof(A) == sizeof(B));
  if (a.shape != b.shape)
    return testing::AssertionFailure() << "shapes " << shown(a.shape) << " and " << shown(b.shape);
  std::int64_t differ = 0;
  std::string first;
  for_each_row(a, b, [&](auto index, std::int64_t offset_a, std::int64_t offset_b) {
    for (std::int64_t d = 0; d < a.extent(Rank - 1); ++d) {
      const auto& x = a.data[offset_a + d * a.stride(Rank - 1)];
      const auto& y = b.data[offset_b + d * b.stride(Rank - 1)];
      if (std::memcmp(&x, &y, sizeof(A)) == 0) continue;
      index[static_cast<std::size_t>(Rank - 1)] = d;
      if (differ++ == 0) first = shown(index) + ": " + testing::PrintToString(x) + " and " + testing::PrintToString(y);
    }
  });
  if (differ == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << differ << " elements differ, the first at " << first;
}

template <class T, int Rank>
testing::AssertionResult same_bits(const Tensor<T, Rank>& a, const Tensor<T, Rank>& b) {
  return same_bits(a.view(), b.view());
}

}  // namespace headlight::test
