// Calls of head_rows() over ragged sizes, and their numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <span>

#include "headlight/head_rows.h"
#include "reference/rotary.h"
#include "support/guarded_rows.h"
#include "support/random.h"

namespace headlight::test::head_rows_case {

inline constexpr std::int64_t kRows = 3;

inline View<float, 3> heads_of(const View<float, 2>& rows, std::int64_t heads) {
  const std::int64_t head_dim = rows.extent(1) / heads;
  return {rows.data, {rows.extent(0), heads, head_dim}, {rows.stride(0), head_dim, 1}};
}
inline MutableTypedView<3> heads_of(const MutableTypedView<2>& rows, std::int64_t heads) {
  const std::int64_t head_dim = rows.extent(1) / heads;
  return {rows.type, rows.data, {rows.extent(0), heads, head_dim}, {rows.stride(0), head_dim, 1}};
}
template <class Scalar>
Tensor<Scalar, 3> heads_of(const Tensor<Scalar, 2>& rows, std::int64_t heads) {
  Tensor<Scalar, 3> tensor({rows.shape()[0], heads, rows.shape()[1] / heads});
  std::copy(rows.begin(), rows.end(), tensor.begin());
  return tensor;
}

// A call: sizes, and what of the options is given.
struct Case {
  std::int64_t heads = 1, head_dim = 1, dims = 0;
  NormKind norm = NormKind::none;
  RotaryPairing pairing = RotaryPairing::halves;
  bool weight = false, one_plus = false, bias = false;
  Against side = Against::back;
};

inline void PrintTo(const Case& c, std::ostream* to) {
  *to << c.heads << " heads of " << c.head_dim << ", " << c.dims << " turned, norm " << static_cast<int>(c.norm)
      << ", pairing " << static_cast<int>(c.pairing) << ", weight " << c.weight << c.one_plus << c.bias;
}

// Its numbers, between guard pages.
struct Numbers {
  Numbers(Random& random, const Case& made)
      : c(made),
        gap(random.integer(0, 5)),
        x(kRows, c.heads * c.head_dim, gap, c.side),
        y_gradient(kRows, c.heads * c.head_dim, random.integer(0, 5), c.side),
        y(kRows, c.heads * c.head_dim, random.integer(0, 5), c.side),
        angles(kRows, c.dims, random.integer(0, 2), c.side),
        weight(1, c.head_dim, 0, c.side),
        bias(1, c.head_dim, 0, c.side) {
    for (GuardedRows* each : {&x, &y_gradient, &angles, &weight, &bias}) each->fill(random);
  }

  [[nodiscard]] HeadRowsOptions options() const {
    const auto list = [&](bool is_given, const GuardedRows& row) {
      return is_given ? std::span<const float>(row.view().data, static_cast<std::size_t>(c.head_dim))
                      : std::span<const float>();
    };
    HeadRowsOptions made = {.norm = c.norm,
                            .weight = list(c.weight, weight),
                            .bias = list(c.bias, bias),
                            .one_plus_weight = c.one_plus,
                            .epsilon = 1e-5f,
                            .rotation = {.pairing = c.pairing}};
    if (c.dims > 0) made.rotation.cosines_and_sines = angles.const_view();
    return made;
  }
  // twin(its options) in numbers of a kind.
  template <class Scalar, class Twin>
  void with_twin(Twin twin) const {
    const Tensor<Scalar, 2> table = angles.to<Scalar>(), by = weight.to<Scalar>(), plus = bias.to<Scalar>();
    reference::HeadRows<Scalar> made = {
        .norm = c.norm, .one_plus_weight = c.one_plus, .epsilon = static_cast<Scalar>(1e-5f), .pairing = c.pairing};
    if (c.dims > 0) made.cosines_and_sines = table.view();
    if (c.weight) made.weight = {by.data(), {c.head_dim}};
    if (c.bias) made.bias = {plus.data(), {c.head_dim}};
    twin(made);
  }

  Case c;
  std::int64_t gap;
  GuardedRows x, y_gradient, y, angles, weight, bias;
};

// Of numbers of those sizes that are turned: a pair may cancel.
inline Tensor<double, 3> turned_sizes(const Tensor<double, 3>& sizes, const Numbers& in) {
  Tensor<double, 3> turned(sizes.shape());
  const Case& c = in.c;
  const View<float, 2> angles = in.angles.view();
  for (std::int64_t n = 0; n < kRows; ++n) {
    for (std::int64_t h = 0; h < c.heads; ++h) {
      for (std::int64_t d = 0; d < c.head_dim; ++d) turned(n, h, d) = std::abs(sizes(n, h, d));
      for (std::int64_t i = 0; i < c.dims / 2; ++i) {
        const bool halves = c.pairing == RotaryPairing::halves;
        const std::int64_t first = halves ? i : 2 * i, second = halves ? c.dims / 2 + i : 2 * i + 1;
        const double a = std::abs(sizes(n, h, first)), b = std::abs(sizes(n, h, second));
        const auto cosine = static_cast<double>(std::abs(angles(n, first)));
        const auto sine = static_cast<double>(std::abs(angles(n, second)));
        turned(n, h, first) = a * cosine + b * sine;
        turned(n, h, second) = a * sine + b * cosine;
      }
    }
  }
  return turned;
}

// f(case) over ragged sizes: heads around every vector width, all and some of their numbers turned.
template <class Function>
void for_cases(Random& random, const Function& f) {
  for (const std::int64_t head_dim : {1, 2, 3, 4, 6, 7, 8, 16, 17, 30, 33, 64, 80, 96, 130}) {
    for (const NormKind norm : {NormKind::none, NormKind::layer, NormKind::rms}) {
      for (int choice = 0; choice < 8; ++choice) {
        const std::int64_t most = head_dim / 2;
        Case made = {.heads = random.integer(1, 4),
                     .head_dim = head_dim,
                     .dims = 2 * (choice % 4 == 0   ? most
                                  : choice % 4 == 1 ? 0
                                                    : random.integer(0, most)),
                     .norm = norm,
                     .pairing = choice < 4 ? RotaryPairing::halves : RotaryPairing::interleaved,
                     .side = random.once_in(2) ? Against::front : Against::back};
        if (norm != NormKind::none) {
          made.weight = !random.once_in(3);
          made.one_plus = norm == NormKind::rms && random.once_in(2);
          made.bias = norm == NormKind::layer && random.once_in(2);
        }
        SCOPED_TRACE(testing::PrintToString(made));
        f(made);
      }
    }
  }
}

}  // namespace headlight::test::head_rows_case
