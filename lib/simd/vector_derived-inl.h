// The part of the vocabulary that is the other part's composition, the same source for every back end.
#pragma once

#include <cstdint>

namespace headlight::HEADLIGHT_TARGET {

inline constexpr float kInfinity = __builtin_inff();

// Adding 1.5·2²³ to a float |v| ≤ 2²² rounds it to the nearest integer (ties to even) and leaves that integer in the
// low bits, to be read or shifted without a conversion.
inline constexpr float kRoundingOffset = 0x1.8p23f;

#if !defined(HEADLIGHT_HAS_SCALEF)
// In two halves, for 2ⁿ itself is no float at either end; the first product is exact.
HEADLIGHT_INLINE Vec scale_by_power_of_two(Vec v, Vec n) {
  const Vec offset = broadcast(kRoundingOffset);
  const IntVec bias = broadcast_int(127);
  const IntVec exponent = sub_int(as_int(add(n, offset)), as_int(offset));
  const IntVec half = shift_right<1>(exponent);
  const Vec first = as_float(shift_left<23>(add_int(half, bias)));
  const Vec second = as_float(shift_left<23>(add_int(sub_int(exponent, half), bias)));
  return mul(mul(v, first), second);
}
#endif

#if !defined(__AVX512F__) && !defined(HEADLIGHT_SIMD_SCALAR_TARGET)
// A byte in the place of the exponent: no subnormal number and no NaN.
HEADLIGHT_INLINE Mask bytes_not_zero(const std::uint8_t* from) {
  return mask_not(equal(as_float(shift_left<23>(load_u8(from))), zero()));
}
#endif

// Half of the last bit that stays, less one where that bit is even, is added to the bits. A NaN is made quiet, so that
// it stays one.
inline constexpr std::int32_t kUpperHalf = -0x10000;
HEADLIGHT_INLINE Vec round_to_bf16(Vec v) {
  const IntVec bits = as_int(v);
  const IntVec is_odd = and_int(shift_right<16>(bits), broadcast_int(1));
  const IntVec rounded = add_int(bits, add_int(is_odd, broadcast_int(0x7fff)));
  return as_float(and_int(as_int(select(is_nan(v), add(v, v), as_float(rounded))), broadcast_int(kUpperHalf)));
}

HEADLIGHT_INLINE Vec load_bf16(const std::uint16_t* from) { return as_float(shift_left<16>(load_u16(from))); }

#if !defined(__F16C__) && !defined(__aarch64__) || defined(HEADLIGHT_SIMD_SCALAR_TARGET)
// The sixteen bits of a binary16 number moved to where binary32 has them mean 2⁻¹¹² of its value, subnormal ones
// included; infinities and NaN then need their exponent filled up.
HEADLIGHT_INLINE Vec load_f16(const std::uint16_t* from) {
  const IntVec bits = load_u16(from);
  const IntVec magnitude = shift_left<13>(and_int(bits, broadcast_int(0x7fff)));
  const Vec finite = mul(as_float(magnitude), broadcast(0x1p112f));
  const Vec special = as_float(add_int(magnitude, broadcast_int(0x70000000)));
  const Vec value = select(less(finite, broadcast(65536.0f)), finite, special);
  return copysign(value, as_float(shift_left<16>(bits)));
}
#endif

HEADLIGHT_INLINE Vec load_bf16_partial(const std::uint16_t* from, int count) {
  std::uint16_t lanes[kLanes] = {};
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i) lanes[i] = from[i];
  return load_bf16(lanes);
}
HEADLIGHT_INLINE Vec load_f16_partial(const std::uint16_t* from, int count) {
  std::uint16_t lanes[kLanes] = {};
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i) lanes[i] = from[i];
  return load_f16(lanes);
}

}  // namespace headlight::HEADLIGHT_TARGET
