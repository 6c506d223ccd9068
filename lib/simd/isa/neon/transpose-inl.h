// A 4×4 matrix.
#pragma once

#include "simd/vector_library-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE void transpose(Vec (&rows)[kLanes]) {
  const float32x4_t r0 = to_native(rows[0]), r1 = to_native(rows[1]);
  const float32x4_t r2 = to_native(rows[2]), r3 = to_native(rows[3]);
  const float64x2_t even01 = vreinterpretq_f64_f32(vtrn1q_f32(r0, r1)),
                    odd01 = vreinterpretq_f64_f32(vtrn2q_f32(r0, r1));
  const float64x2_t even23 = vreinterpretq_f64_f32(vtrn1q_f32(r2, r3)),
                    odd23 = vreinterpretq_f64_f32(vtrn2q_f32(r2, r3));
  rows[0] = from_native(vreinterpretq_f32_f64(vtrn1q_f64(even01, even23)));
  rows[1] = from_native(vreinterpretq_f32_f64(vtrn1q_f64(odd01, odd23)));
  rows[2] = from_native(vreinterpretq_f32_f64(vtrn2q_f64(even01, even23)));
  rows[3] = from_native(vreinterpretq_f32_f64(vtrn2q_f64(odd01, odd23)));
}

}  // namespace headlight::HEADLIGHT_TARGET
