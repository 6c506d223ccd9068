// From raw scores to weights relative to the block's maximum.
#pragma once

#include "kernels/attention/kernels.h"
#include "kernels/attention/tile-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr float kLargest = 3.40282347e38f;

// A finite score must not become infinite by the change of unit: a row whose every key carries −FLT_MAX still sees them
// all. NaN stays: max and min give their second operand where one is NaN.
HEADLIGHT_INLINE Vec bounded(Vec score) { return min(broadcast(kLargest), max(broadcast(-kLargest), score)); }

// exponent_scale · score, in units of log 2.
HEADLIGHT_INLINE Vec scaled(Vec score, Vec exponent_scale) {
  return select(equal(abs(score), broadcast(kInfinity)), score, bounded(mul(score, exponent_scale)));
}

// The vectors of a row's scores that hold keys begin … end − 1.
struct VectorRange {
  std::int64_t begin;
  std::int64_t end;
};
inline VectorRange vectors_of(std::int64_t begin, std::int64_t end) { return {begin / kLanes, divide_up(end, kLanes)}; }

// What else they hold is put to −inf.
inline VectorRange hide_edges(float* scores, std::int64_t begin, std::int64_t end) {
  const Vec nothing = broadcast(-kInfinity);
  const VectorRange range = vectors_of(begin, end);
  if (const int before = static_cast<int>(begin % kLanes)) {
    float* at = scores + range.begin * kLanes;
    store(select(mask_first(before), nothing, load(at)), at);
  }
  if (const int count = static_cast<int>(end % kLanes)) {
    float* at = scores + (range.end - 1) * kLanes;
    store(select(mask_first(count), load(at), nothing), at);
  }
  return range;
}

// The greater of `running` and the scores of those vectors, lane by lane; NaN is passed over.
inline Vec maximum_with(Vec running, const float* scores, VectorRange range) {
  for (std::int64_t v = range.begin; v < range.end; ++v) running = max(load(scores + v * kLanes), running);
  return running;
}

// Weights are exp2(fma(score, scale, −maximum)), with one rounding where the row's maximum is a rounded product itself:
// the largest weight is 1 but for that rounding. From such a maximum on it is a whole power of two or more, and from
// 2³⁰ on nothing that exp2 could give back: there the scores are rounded in units of log 2 first, as the maximum was.
inline constexpr float kLargeScore = 0x1p24f;
inline bool is_large(float maximum) { return maximum >= kLargeScore || maximum <= -kLargeScore; }

inline void scale_scores(float* scores, VectorRange range, Vec exponent_scale) {
  for (std::int64_t v = range.begin; v < range.end; ++v) {
    store(scaled(load(scores + v * kLanes), exponent_scale), scores + v * kLanes);
  }
}

// What becomes of a row's weights: they stay floats, where their scores lay. Of put() `vector` is even.
struct FloatWeights {
  static HEADLIGHT_INLINE void put(Vec first, Vec second, float* row, std::int64_t vector) {
    put_one(first, row, vector);
    put_one(second, row, vector + 1);
  }
  static HEADLIGHT_INLINE void put_one(Vec weights, float* row, std::int64_t vector) {
    store(weights, row + vector * kLanes);
  }
};

// score ← exp2(scale · score − maximum); returns their sums by lane: even and odd vectors of the block apart, each in
// ascending order, then added. A maximum of −inf (nothing visible) must be given as 0.
template <class Weights>
inline Vec weigh(float* scores, VectorRange range, Vec scale, Vec minus_maximum) {
  Vec even = zero();
  Vec odd = zero();
  std::int64_t v = range.begin;
  const auto weight = [&](std::int64_t vector) __attribute__((always_inline)) {
    return exp2_nonpositive(fma(load(scores + vector * kLanes), scale, minus_maximum));
  };
  if (v % 2 != 0 && v < range.end) {
    odd = weight(v);
    Weights::put_one(odd, scores, v++);
  }
#pragma GCC unroll 2
  for (; v + 2 <= range.end; v += 2) {
    const Vec first = weight(v);
    const Vec second = weight(v + 1);
    even = add(even, first);
    odd = add(odd, second);
    Weights::put(first, second, scores, v);
  }
  if (v < range.end) {
    const Vec last = weight(v);
    even = add(even, last);
    Weights::put_one(last, scores, v);
  }
  return add(even, odd);
}

}  // namespace headlight::HEADLIGHT_TARGET
