// From raw scores to weights relative to the block's maximum.
#pragma once

#include "kernels/attention/kernels.h"
#include "kernels/attention/tile-inl.h"
#include "simd/math-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr float kLargest = 3.40282347e38f;

// Scores beyond that are multiplied and compared with care: a result that overflows would be a trap of a host that asks
// for it. There are hardly any.
inline constexpr float kCareful = 0x1p100f;
inline constexpr float kCarefulScale = 0x1p27f;

// scaled() for any score and scale. Factors that are 2⁶⁴ times as small have a product that does not overflow, and the
// same digits where the whole one could: there it is bounded first.
[[gnu::noinline]] inline Vec scaled_carefully(Vec score, Vec exponent_scale) {
  const Vec small = broadcast(0x1p-64f), large = broadcast(0x1p64f);
  const Mask is_finite = less(abs(score), broadcast(kInfinity));
  const Vec number = select(is_finite, score, zero());  // a scale that becomes 0 has no product with infinity
  const Vec part = mul(mul(number, small), mul(exponent_scale, small));
  const Mask is_large = less(broadcast(0x1p-4f), abs(part));
  const Vec largest = broadcast(kLargest / 0x1p64f / 0x1p64f);
  const Vec bounded = mul(mul(min(largest, max(neg(largest), part)), large), large);
  const Vec product = mul(select(is_large, zero(), number), exponent_scale);
  return select(is_finite, select(is_large, bounded, product), score);
}

// Whether some score must be.
HEADLIGHT_INLINE bool is_scaled_carefully(Vec score, Vec exponent_scale) {
  const Vec size = abs(score);
  const Mask is_large = mask_or(less(broadcast(kCareful), size), less(broadcast(kCarefulScale), exponent_scale));
  return any_of(mask_and(is_large, less(size, broadcast(kInfinity))));
}

// exponent_scale · score, in units of log 2. A finite score must not become infinite by the change of unit: a row whose
// every key carries −FLT_MAX still sees them all. NaN stays.
HEADLIGHT_INLINE Vec scaled(Vec score, Vec exponent_scale) {
  if (__builtin_expect(is_scaled_carefully(score, exponent_scale), 0)) return scaled_carefully(score, exponent_scale);
  return mul(score, exponent_scale);
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

// Beside a maximum that is large and positive, what is below 0 weighs nothing, and the distance from it might overflow:
// it counts as 0, which weighs nothing either.
HEADLIGHT_INLINE Vec least_beside(Vec minus_maximum) {
  return select(less(minus_maximum, broadcast(-kLargeScore)), zero(), broadcast(-kInfinity));
}
// Scores of a row whose maximum is large; the scale may be negative, and −∞ stays what it is.
HEADLIGHT_INLINE Vec scaled_beside(Vec score, Vec exponent_scale, Vec minus_maximum) {
  return max(least_beside(minus_maximum), scaled_carefully(score, exponent_scale));
}
[[gnu::noinline]] inline void scale_scores(float* scores, VectorRange range, Vec exponent_scale, Vec minus_maximum) {
  for (std::int64_t v = range.begin; v < range.end; ++v) {
    store(scaled_beside(load(scores + v * kLanes), exponent_scale, minus_maximum), scores + v * kLanes);
  }
}

// Beside a maximum that is not large such a score weighs nothing, and a lower one could overflow as it changes its
// unit: it is computed with this in its place, where modifiers may have made it so low (ScoreModifiers::may_be_low).
inline constexpr float kLowestScore = -0x1p126f;

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
// ascending order, then added. A maximum of −inf (nothing visible) must be given as 0. kLow: see kLowestScore.
template <class Weights, bool kLow = false>
inline Vec weigh(float* scores, VectorRange range, Vec scale, Vec minus_maximum) {
  Vec even = zero();
  Vec odd = zero();
  std::int64_t v = range.begin;
  const auto weight = [&](std::int64_t vector) __attribute__((always_inline)) {
    Vec score = load(scores + vector * kLanes);
    if constexpr (kLow) score = max(broadcast(kLowestScore), score);
    return exp2_nonpositive(fma(score, scale, minus_maximum));
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

template <class Weights>
[[gnu::noinline]] Vec weigh_low(float* scores, VectorRange range, Vec scale, Vec minus_maximum) {
  return weigh<Weights, true>(scores, range, scale, minus_maximum);
}

}  // namespace headlight::HEADLIGHT_TARGET
