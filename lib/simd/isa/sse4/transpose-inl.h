// A 4×4 matrix.
#pragma once

#include "simd/isa/x86-inl.h"
#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE void transpose(Vec (&rows)[kLanes]) {
  __m128 r0 = to_native(rows[0]), r1 = to_native(rows[1]), r2 = to_native(rows[2]), r3 = to_native(rows[3]);
  _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
  rows[0] = from_native(r0);
  rows[1] = from_native(r1);
  rows[2] = from_native(r2);
  rows[3] = from_native(r3);
}

}  // namespace headlight::HEADLIGHT_TARGET
