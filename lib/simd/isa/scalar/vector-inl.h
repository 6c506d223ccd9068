// The vocabulary with one lane: plain C++, the same for either SIMD library, for machines that have nothing better.
#pragma once

#include <cstdint>

#include "simd/target-inl.h"

namespace headlight::HEADLIGHT_TARGET {

using Vec = float;
using IntVec = std::int32_t;
using Mask = bool;

inline constexpr int kLanes = 1;

HEADLIGHT_INLINE Vec zero() { return 0.0f; }
HEADLIGHT_INLINE Vec broadcast(float value) { return value; }
HEADLIGHT_INLINE Vec lane_index() { return 0.0f; }
HEADLIGHT_INLINE Vec load(const float* from) { return *from; }
HEADLIGHT_INLINE void store(Vec v, float* to) { *to = v; }
HEADLIGHT_INLINE Vec load_partial(const float* from, int count) { return count > 0 ? *from : 0.0f; }
HEADLIGHT_INLINE void store_partial(Vec v, float* to, int count) {
  if (count > 0) *to = v;
}

HEADLIGHT_INLINE IntVec broadcast_int(std::int32_t value) { return value; }
HEADLIGHT_INLINE IntVec as_int(Vec v) { return __builtin_bit_cast(IntVec, v); }
HEADLIGHT_INLINE Vec as_float(IntVec v) { return __builtin_bit_cast(float, v); }
// Sums wrap around: the vector functions let the bits of a NaN run through them.
HEADLIGHT_INLINE IntVec add_int(IntVec a, IntVec b) {
  return static_cast<IntVec>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
HEADLIGHT_INLINE IntVec sub_int(IntVec a, IntVec b) {
  return static_cast<IntVec>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}
HEADLIGHT_INLINE IntVec mul_int(IntVec a, IntVec b) {
  return static_cast<IntVec>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
}
HEADLIGHT_INLINE Vec to_float(IntVec v) { return static_cast<float>(v); }
HEADLIGHT_INLINE IntVec and_int(IntVec a, IntVec b) { return a & b; }
template <int kBits>
HEADLIGHT_INLINE IntVec shift_left(IntVec v) {
  return static_cast<IntVec>(static_cast<std::uint32_t>(v) << kBits);
}
template <int kBits>
HEADLIGHT_INLINE IntVec shift_right(IntVec v) {
  return v >> kBits;
}
HEADLIGHT_INLINE Vec load_i8(const std::int8_t* from) { return static_cast<float>(*from); }
HEADLIGHT_INLINE Mask bytes_not_zero(const std::uint8_t* from) { return *from != 0; }
HEADLIGHT_INLINE void store_i8(IntVec v, std::int8_t* to) { *to = static_cast<std::int8_t>(v); }
HEADLIGHT_INLINE IntVec load_u16(const std::uint16_t* from) { return *from; }
HEADLIGHT_INLINE void store_u16(IntVec v, std::uint16_t* to) {
  const auto half = static_cast<std::uint16_t>(v);
  __builtin_memcpy(to, &half, sizeof half);
}
// Two int16 in one lane.
HEADLIGHT_INLINE std::int32_t lower_half(IntVec v) { return static_cast<std::int16_t>(v); }
HEADLIGHT_INLINE std::int32_t upper_half(IntVec v) { return v >> 16; }
HEADLIGHT_INLINE IntVec halves(std::int32_t lower, std::int32_t upper) {
  return add_int(shift_left<16>(upper), lower & 0xffff);
}
HEADLIGHT_INLINE IntVec even_bytes(IntVec v) {
  return halves(static_cast<std::int8_t>(v), static_cast<std::int8_t>(v >> 16));
}
HEADLIGHT_INLINE IntVec odd_bytes(IntVec v) { return even_bytes(v >> 8); }
HEADLIGHT_INLINE IntVec dot_i16(IntVec a, IntVec b, IntVec sum) {
  return add_int(sum, lower_half(a) * lower_half(b) + upper_half(a) * upper_half(b));
}

HEADLIGHT_INLINE Vec add(Vec a, Vec b) { return a + b; }
HEADLIGHT_INLINE Vec sub(Vec a, Vec b) { return a - b; }
HEADLIGHT_INLINE Vec mul(Vec a, Vec b) { return a * b; }
HEADLIGHT_INLINE Vec div(Vec a, Vec b) { return a / b; }
HEADLIGHT_INLINE Vec sqrt(Vec a) { return __builtin_sqrtf(a); }
// Two roundings: a fused multiply-add without the instruction would be a library call.
HEADLIGHT_INLINE Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
HEADLIGHT_INLINE Vec fnma(Vec a, Vec b, Vec c) { return c - a * b; }
HEADLIGHT_INLINE Vec max(Vec a, Vec b) { return a > b ? a : b; }
HEADLIGHT_INLINE Vec min(Vec a, Vec b) { return a < b ? a : b; }
HEADLIGHT_INLINE Vec abs(Vec a) { return __builtin_fabsf(a); }
HEADLIGHT_INLINE Vec neg(Vec a) { return -a; }
HEADLIGHT_INLINE Vec copysign(Vec magnitude, Vec sign) { return __builtin_copysignf(magnitude, sign); }
// From 2²³ on every float is an integer; below, adding and taking away 2²³ rounds to one, ties to even.
HEADLIGHT_INLINE Vec round(Vec a) {
  const Vec magnitude = abs(a);
  return magnitude < 0x1p23f ? copysign((magnitude + 0x1p23f) - 0x1p23f, a) : a;
}

HEADLIGHT_INLINE Mask less(Vec a, Vec b) { return a < b; }
HEADLIGHT_INLINE Mask less_equal(Vec a, Vec b) { return a <= b; }
HEADLIGHT_INLINE Mask equal(Vec a, Vec b) { return a == b; }
HEADLIGHT_INLINE Mask is_nan(Vec a) { return a != a; }
HEADLIGHT_INLINE Mask mask_first(int count) { return count > 0; }
HEADLIGHT_INLINE Mask mask_and(Mask a, Mask b) { return a && b; }
HEADLIGHT_INLINE Mask mask_or(Mask a, Mask b) { return a || b; }
HEADLIGHT_INLINE Mask mask_not(Mask a) { return !a; }
HEADLIGHT_INLINE bool any_of(Mask a) { return a; }
HEADLIGHT_INLINE Vec select(Mask mask, Vec yes, Vec no) { return mask ? yes : no; }

HEADLIGHT_INLINE float sum_of_lanes(Vec v) { return v; }
HEADLIGHT_INLINE float max_of_lanes(Vec v) { return v; }
HEADLIGHT_INLINE void transpose(Vec (&)[kLanes]) {}

}  // namespace headlight::HEADLIGHT_TARGET
