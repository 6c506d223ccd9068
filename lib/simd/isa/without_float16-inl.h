// binary16 numbers by integers, where no instruction converts them.
#pragma once

#include <cstdint>

#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

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
// has a spacing of 2⁻²⁴, which is that of a subnormal number.
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

}  // namespace headlight::HEADLIGHT_TARGET
