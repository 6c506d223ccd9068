// Heads of rows, normalised and turned. A head comes from L1 the second time, and is written once.
#pragma once

#include "kernels/rows/kernels.h"
#include "kernels/rows/layer_norm-inl.h"
#include "kernels/rows/rms_norm-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// How numbers of a head are read: as they are, or normalised with the bits of layer_norm() and rms_norm().
struct PlainHead {
  const float* x;

  template <class Some>
  HEADLIGHT_INLINE Vec get(Some some, std::int64_t at) const {
    return some.get(x + at);
  }
};
struct NormalHead {
  const float* x;
  Normal normal;
  NormWeight weight;
  const float* bias;

  template <class Some>
  HEADLIGHT_INLINE Vec get(Some some, std::int64_t at) const {
    const Vec n = normal.of(some.get(x + at));
    if (bias == nullptr) return weight.weight != nullptr ? mul(n, weight.get(some, at)) : n;
    const Vec b = some.get(bias + at);
    return weight.weight != nullptr ? fma(n, weight.get(some, at), b) : add(n, b);
  }
};

// angles: cosines and sines of all pairs; the sines are turned round by `sign`.
template <class Head>
HEADLIGHT_INLINE void turn_halves(const Head& head, const float* angles, Vec sign, std::int64_t half, float* y) {
  walk_columns<1>(half, [&](auto some, std::int64_t at) {
    const Vec a = head.get(some, at), b = head.get(some, half + at);
    const Vec cosine = some.get(angles + at), sine = mul(some.get(angles + half + at), sign);
    some.put(fnma(b, sine, mul(a, cosine)), y + at);
    some.put(fma(a, sine, mul(b, cosine)), y + half + at);
  });
}

// angles: cosine and sine of each pair in turn.
template <class Head>
HEADLIGHT_INLINE void turn_neighbours(const Head& head, const float* angles, Vec sign, std::int64_t dims, float* y) {
  if constexpr (kLanes == 1) {
    const WholeVector one{};
    for (std::int64_t at = 0; at < dims; at += 2) {
      const Vec a = head.get(one, at), b = head.get(one, at + 1);
      const Vec cosine = load(angles + at), sine = mul(load(angles + at + 1), sign);
      store(fnma(b, sine, mul(a, cosine)), y + at);
      store(fma(a, sine, mul(b, cosine)), y + at + 1);
    }
  } else {
    const Vec signs = mul(sign, load(kAlternatingSigns));
    walk_columns<1>(dims, [&](auto some, std::int64_t at) {
      const Vec pairs = head.get(some, at), turns = some.get(angles + at);
      const Vec sine = mul(second_of_pairs(turns), signs);
      some.put(fma(swap_pairs(pairs), sine, mul(pairs, first_of_pairs(turns))), y + at);
    });
  }
}

template <class MakeHead>
HEADLIGHT_INLINE void head_rows_as(const kernels::HeadRowsArguments& a, MakeHead make_head) {
  const Vec sign = broadcast(a.inverse ? -1.0f : 1.0f);
  for (std::int64_t row = 0; row < a.rows; ++row) {
    const float* const angles = a.dims > 0 ? a.angles.row(row) : nullptr;
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const auto head = make_head(a.x.row(row) + h * a.head_dim);
      float* const y = a.y.row(row) + h * a.head_dim;
      if (a.interleaved) {
        turn_neighbours(head, angles, sign, a.dims, y);
      } else {
        turn_halves(head, angles, sign, a.dims / 2, y);
      }
      walk_columns<1>(a.head_dim - a.dims,
                      [&](auto some, std::int64_t at) { some.put(head.get(some, a.dims + at), y + a.dims + at); });
    }
  }
}

inline void head_rows(const kernels::HeadRowsArguments& a) noexcept {
  if (a.norm == NormKind::none) return head_rows_as(a, [](const float* x) { return PlainHead{x}; });
  head_rows_as(a, [&](const float* x) {
    const Normal normal =
        a.norm == NormKind::rms
            ? Normal{zero(), zero(), inverse_root_mean_square(x, a.head_dim, a.epsilon)}
            : normal_of_row(x, a.head_dim, sum_of_row<false>(x, nullptr, nullptr, a.head_dim), a.epsilon);
    return NormalHead{x, normal, {a.weight, a.one_plus_weight}, a.bias};
  });
}

}  // namespace headlight::HEADLIGHT_TARGET
