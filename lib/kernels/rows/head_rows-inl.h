// Heads of rows, normalised and turned. A head comes from L1 the second time, and is written once.
#pragma once

#include <cstdint>

#include "kernels/rows/head_kernels.h"
#include "kernels/rows/rms_norm-inl.h"
#include "simd/integers.h"

namespace headlight::HEADLIGHT_TARGET {

// How numbers of a head are read: as they are, or normalised with the bits of rms_norm().
struct PlainHead {
  const float* x;

  template <class Some>
  HEADLIGHT_INLINE Vec get(Some some, std::int64_t at) const {
    return some.get(x + at);
  }
};
struct RmsHead {
  const float* x;
  Vec inverse;
  NormWeight weight;

  template <class Some>
  HEADLIGHT_INLINE Vec get(Some some, std::int64_t at) const {
    const Vec n = mul(some.get(x + at), inverse);
    return weight.weight != nullptr ? mul(n, weight.get(some, at)) : n;
  }
};

// angles: cosines and sines of all pairs; the sines are turned round by `sign`. Memory is read and written in long
// stretches: where lines of the two halves come in turns, the processor does not fetch them ahead.
template <class Numbers, class Head>
HEADLIGHT_INLINE void turn_halves(const Head& head, const float* angles, Vec sign, std::int64_t half,
                                  typename Numbers::Storage* y) {
  const auto turn = [&](auto some, std::int64_t at) __attribute__((always_inline)) {
    constexpr int kVectors = decltype(some)::kVectors;
    Vec a[kVectors], b[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) a[v] = head.get(some, at + v * kLanes);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) b[v] = head.get(some, half + at + v * kLanes);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Vec cosine = some.get(angles + at + v * kLanes),
                sine = mul(some.get(angles + half + at + v * kLanes), sign);
      const Vec turned = fnma(b[v], sine, mul(a[v], cosine));
      b[v] = fma(a[v], sine, mul(b[v], cosine));
      a[v] = turned;
    }
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) some.template put<Numbers>(a[v], y + at + v * kLanes);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) some.template put<Numbers>(b[v], y + half + at + v * kLanes);
  };
  walk_columns<4>(half, turn);
}

// angles: cosine and sine of each pair in turn.
template <class Numbers, class Head>
HEADLIGHT_INLINE void turn_neighbours(const Head& head, const float* angles, Vec sign, std::int64_t dims,
                                      typename Numbers::Storage* y) {
  if constexpr (kLanes == 1) {
    const WholeVector one{};
    for (std::int64_t at = 0; at < dims; at += 2) {
      const Vec a = head.get(one, at), b = head.get(one, at + 1);
      const Vec cosine = load(angles + at), sine = mul(load(angles + at + 1), sign);
      Numbers::store(fnma(b, sine, mul(a, cosine)), y + at);
      Numbers::store(fma(a, sine, mul(b, cosine)), y + at + 1);
    }
  } else {
    const Vec signs = mul(sign, load(kAlternatingSigns));
    walk_columns<1>(dims, [&](auto some, std::int64_t at) {
      const Vec pairs = head.get(some, at), turns = some.get(angles + at);
      const Vec sine = mul(second_of_pairs(turns), signs);
      some.template put<Numbers>(fma(swap_pairs(pairs), sine, mul(pairs, first_of_pairs(turns))), y + at);
    });
  }
}

template <class Numbers, class Head>
HEADLIGHT_INLINE void turn_head(const kernels::HeadRowsArguments& a, const Head& head, const float* angles, Vec sign,
                                typename Numbers::Storage* y) {
  if (a.interleaved) {
    turn_neighbours<Numbers>(head, angles, sign, a.dims, y);
  } else {
    turn_halves<Numbers>(head, angles, sign, a.dims / 2, y);
  }
  walk_columns<1>(a.head_dim - a.dims, [&](auto some, std::int64_t at) {
    some.template put<Numbers>(head.get(some, a.dims + at), y + a.dims + at);
  });
}

// 1 / root mean square of so many heads. Roots and quotients of vectors take as long as those of one number, so they
// are done for all heads at once.
inline constexpr std::int64_t kHeadsTogether = 16;
HEADLIGHT_INLINE void inverse_root_mean_squares(const kernels::HeadRowsArguments& a, const float* x, std::int64_t heads,
                                                float (&inverses)[kHeadsTogether]) {
  for (std::int64_t h = 0; h < heads; ++h) {
    inverses[h] = dot_of_rows(x + h * a.head_dim, x + h * a.head_dim, a.head_dim);
  }
  // A lane that belongs to none divides by something else than 0.
  for (std::int64_t h = heads; h < round_up(heads, kLanes); ++h) inverses[h] = 1.0f;
  for (std::int64_t h = 0; h < heads; h += kLanes) {
    const Vec mean = div(load(inverses + h), broadcast(static_cast<float>(a.head_dim)));
    store(div(broadcast(1.0f), sqrt(add(mean, broadcast(a.epsilon)))), inverses + h);
  }
}

// Heads first … first + count − 1 of a row.
template <class Numbers>
HEADLIGHT_INLINE void turn_heads(const kernels::HeadRowsArguments& a, std::int64_t row, std::int64_t first,
                                 std::int64_t count, const float* inverses) {
  const Vec sign = broadcast(a.inverse ? -1.0f : 1.0f);
  const float* const angles = a.dims > 0 ? a.angles.row(row) : nullptr;
  const float* x = a.x.row(row) + first * a.head_dim;
  auto* y = static_cast<typename Numbers::Storage*>(a.y) + row * a.y_stride + first * a.head_dim;
  if (!a.normalizes) {
    for (std::int64_t h = 0; h < count; ++h, x += a.head_dim, y += a.head_dim) {
      turn_head<Numbers>(a, PlainHead{x}, angles, sign, y);
    }
    return;
  }
  const NormWeight weight(a.weight, a.one_plus_weight);
  for (std::int64_t h = 0; h < count; ++h, x += a.head_dim, y += a.head_dim) {
    turn_head<Numbers>(a, RmsHead{x, broadcast(inverses[h]), weight}, angles, sign, y);
  }
}

// What heads are divided by is known only a long chain after their numbers: meanwhile those before them are written.
template <class Numbers>
void head_rows(const kernels::HeadRowsArguments& a) noexcept {
  alignas(64) float inverses[2][kHeadsTogether];
  const std::int64_t together = a.normalizes ? kHeadsTogether : a.heads;
  const std::int64_t groups = divide_up(a.heads, together), all = a.rows * groups;
  const auto prepare = [&](std::int64_t number) {
    if (!a.normalizes || number == all) return;
    const std::int64_t first = number % groups * together;
    inverse_root_mean_squares(a, a.x.row(number / groups) + first * a.head_dim, smaller(together, a.heads - first),
                              inverses[number % 2]);
  };
  if (all > 0) prepare(0);
  for (std::int64_t number = 0; number < all; ++number) {
    prepare(number + 1);
    const std::int64_t first = number % groups * together;
    turn_heads<Numbers>(a, number / groups, first, smaller(together, a.heads - first), inverses[number % 2]);
  }
}

}  // namespace headlight::HEADLIGHT_TARGET
