// The part of the vocabulary that is the other part's composition, the same source for every target.
#pragma once

#include <cstdint>

namespace headlight::HEADLIGHT_TARGET {

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
  if constexpr (kFeature.stores_normal_bfloat16) {
    if (store_normal_bf16(v, to)) return;
  }
  store_u16(and_int(shift_right<16>(as_int(round_to_bf16(v))), broadcast_int(0xffff)), to);
}

HEADLIGHT_INLINE Vec load_bf16(const std::uint16_t* from) { return as_float(shift_left<16>(load_u16(from))); }

// Functions of their own: the ends of rows are many in the code, and rarely run.
[[gnu::noinline]] inline void store_bf16_partial(Vec v, std::uint16_t* to, int count) noexcept {
  std::uint16_t lanes[kLanes];
  store_bf16(v, lanes);
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i) to[i] = lanes[i];
}
[[gnu::noinline]] inline void store_f16_partial(Vec v, std::uint16_t* to, int count) noexcept {
  std::uint16_t lanes[kLanes];
  store_f16(v, lanes);
#pragma GCC unroll 1
  for (int i = 0; i < count; ++i) to[i] = lanes[i];
}

}  // namespace headlight::HEADLIGHT_TARGET
