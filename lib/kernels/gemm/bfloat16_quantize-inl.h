// Words of two bfloat16 numbers.
#pragma once

#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// One number of each of two vectors of bfloat16 numbers, side by side: even's in the lower half.
HEADLIGHT_INLINE Vec joined(Vec even, Vec odd) {
  const IntVec low = and_int(shift_right<16>(as_int(even)), broadcast_int(0xffff));
  return as_float(add_int(low, as_int(odd)));
}
// The same of floats, each rounded to such a number.
HEADLIGHT_INLINE Vec pairs_of(Vec even, Vec odd) { return joined(round_to_bf16(even), round_to_bf16(odd)); }

}  // namespace headlight::HEADLIGHT_TARGET
