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

#if !defined(__AVX512F__)
#if defined(HEADLIGHT_SIMD_SCALAR_TARGET)
HEADLIGHT_INLINE Vec load_i8(const std::int8_t* from) { return static_cast<float>(*from); }
#else
// The sign is moved to the top, and back.
HEADLIGHT_INLINE Vec load_i8(const std::int8_t* from) {
  return to_float(shift_right<24>(shift_left<24>(load_u8(reinterpret_cast<const std::uint8_t*>(from)))));
}
#endif
struct EightBitLanes {
  std::int8_t lanes[kLanes];
};
[[gnu::noinline]] inline EightBitLanes first_bytes(const std::int8_t* from, int count) {
  EightBitLanes numbers{};
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i) numbers.lanes[i] = from[i];
  return numbers;
}
HEADLIGHT_INLINE Vec load_i8_partial(const std::int8_t* from, int count) {
  return load_i8(first_bytes(from, count).lanes);
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

HEADLIGHT_INLINE void store_bf16(Vec v, std::uint16_t* to) {
#if defined(__AVX512BF16__)
  if (store_normal_bf16(v, to)) return;
#endif
  store_u16(and_int(shift_right<16>(as_int(round_to_bf16(v))), broadcast_int(0xffff)), to);
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

// Normal numbers as in round_to_bf16(), 13 bits further down and with the other bias. Below 2⁻¹⁴ the sum with one half
// has steps of 2⁻²⁴, which are those of a subnormal number.
HEADLIGHT_INLINE void store_f16(Vec v, std::uint16_t* to) {
  const Vec magnitude = abs(v);
  const IntVec bits = as_int(magnitude);
  const IntVec is_odd = and_int(shift_right<13>(bits), broadcast_int(1));
  const IntVec rounded = add_int(bits, add_int(is_odd, broadcast_int(0xfff - (112 << 23))));
  const Vec normal = as_float(shift_right<13>(rounded));
  const Vec half = broadcast(0.5f);
  const Vec subnormal = as_float(sub_int(as_int(add(magnitude, half)), as_int(half)));
  const Vec finite = select(less(magnitude, broadcast(0x1p-14f)), subnormal, normal);
  const IntVec fraction = and_int(shift_right<13>(bits), broadcast_int(0x3ff));
  const Vec quiet = as_float(add_int(and_int(fraction, broadcast_int(0x1ff)), broadcast_int(0x7e00)));
  const Vec special = select(is_nan(v), quiet, as_float(broadcast_int(0x7c00)));
  const IntVec number = as_int(select(less(magnitude, broadcast(65520.0f)), finite, special));
  const IntVec sign = and_int(shift_right<16>(as_int(v)), broadcast_int(0x8000));
  store_u16(add_int(number, sign), to);
}
#endif

#if !defined(__AVX2__) || defined(HEADLIGHT_SIMD_SCALAR_TARGET)
// By itself: a square of keys has as many of them as a vector has lanes, and a loop in each place is most of a kernel.
struct SixteenBitLanes {
  std::uint16_t lanes[kLanes];
};
[[gnu::noinline]] inline SixteenBitLanes first_numbers(const std::uint16_t* from, int count) {
  SixteenBitLanes numbers{};
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i) numbers.lanes[i] = from[i];
  return numbers;
}
HEADLIGHT_INLINE Vec load_bf16_partial(const std::uint16_t* from, int count) {
  return load_bf16(first_numbers(from, count).lanes);
}
HEADLIGHT_INLINE Vec load_f16_partial(const std::uint16_t* from, int count) {
  return load_f16(first_numbers(from, count).lanes);
}
#endif

HEADLIGHT_INLINE void store_bf16_partial(Vec v, std::uint16_t* to, int count) {
  std::uint16_t lanes[kLanes];
  store_bf16(v, lanes);
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i) to[i] = lanes[i];
}
HEADLIGHT_INLINE void store_f16_partial(Vec v, std::uint16_t* to, int count) {
  std::uint16_t lanes[kLanes];
  store_f16(v, lanes);
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i) to[i] = lanes[i];
}

}  // namespace headlight::HEADLIGHT_TARGET
