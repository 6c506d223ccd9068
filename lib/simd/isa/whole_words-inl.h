// Philox's words as the lanes of one vector, where a product of all lanes costs no more than one of some: on NEON, and
// without vectors. What an instruction set has beside this: mul_wide(), xor_words(), in_order(), keep_where_at_least().
#pragma once

#include <cstdint>

#include "simd/isa/philox_words-inl.h"

namespace headlight::HEADLIGHT_TARGET {

using Words = IntVec;

HEADLIGHT_INLINE Words all_words(std::uint32_t word) { return broadcast_int(static_cast<std::int32_t>(word)); }

// 0 … 3 as the bits of floats, for they are loaded as such.
struct CounterLanes {
  float bits[4];
};
inline constexpr CounterLanes kCounterLanes = {{__builtin_bit_cast(float, 0), __builtin_bit_cast(float, 1),
                                                __builtin_bit_cast(float, 2), __builtin_bit_cast(float, 3)}};

HEADLIGHT_INLINE Words counter_words(std::uint32_t first) {
  static_assert(kLanes <= 4);
  return add_int(broadcast_int(static_cast<std::int32_t>(first)), as_int(load(kCounterLanes.bits)));
}

}  // namespace headlight::HEADLIGHT_TARGET
