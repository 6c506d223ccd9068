// What puts in place the operands and sums of instructions that multiply two rows by two columns.
#pragma once

#include "simd/isa/neon/native-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE Vec load_two_of_each(const float* first, const float* second) {
  return from_native(vcombine_f32(vld1_f32(first), vld1_f32(second)));
}
HEADLIGHT_INLINE float64x2_t as_doubles(Vec v) { return vreinterpretq_f64_f32(to_native(v)); }
HEADLIGHT_INLINE Vec lower_halves(Vec a, Vec b) {
  return from_native(vreinterpretq_f32_f64(vzip1q_f64(as_doubles(a), as_doubles(b))));
}
HEADLIGHT_INLINE Vec upper_halves(Vec a, Vec b) {
  return from_native(vreinterpretq_f32_f64(vzip2q_f64(as_doubles(a), as_doubles(b))));
}
HEADLIGHT_INLINE Vec interleave_lower(Vec a, Vec b) { return from_native(vzip1q_f32(to_native(a), to_native(b))); }
HEADLIGHT_INLINE Vec interleave_upper(Vec a, Vec b) { return from_native(vzip2q_f32(to_native(a), to_native(b))); }

// Products are done as they are written. g++ 12 would read all rows of an iteration ahead and have no register left for
// four of the 24 sums of a tile of 12 rows.
HEADLIGHT_INLINE Vec in_order(Vec sum) {
  auto native = to_native(sum);
  asm volatile("" : "+w"(native));
  return from_native(native);
}

}  // namespace headlight::HEADLIGHT_TARGET
