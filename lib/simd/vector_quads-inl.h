// The part of vector_native-inl.h that some Arm CPUs have: what multiplies two rows by two columns, and what puts its
// operands and sums in place.
#pragma once

#include <arm_neon.h>

namespace headlight::HEADLIGHT_TARGET {

#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
HEADLIGHT_INLINE bfloat16x8_t as_pairs(Vec v) { return vreinterpretq_bf16_f32(to_native(v)); }
HEADLIGHT_INLINE Vec dot_bf16(Vec a, Vec b, Vec sum) {
  return from_native(vbfdotq_f32(to_native(sum), as_pairs(a), as_pairs(b)));
}
HEADLIGHT_INLINE Vec multiply_quads_of_bf16(Vec a, Vec b, Vec sum) {
  return from_native(vbfmmlaq_f32(to_native(sum), as_pairs(a), as_pairs(b)));
}
HEADLIGHT_INLINE Vec narrow_to_bf16(Vec first, Vec second) {
  const bfloat16x8_t numbers = vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(to_native(first)), to_native(second));
  return from_native(vreinterpretq_f32_bf16(numbers));
}
#endif
#if defined(__ARM_FEATURE_MATMUL_INT8)
HEADLIGHT_INLINE IntVec multiply_quads_of_bytes(IntVec a, IntVec b, IntVec sum) {
  return from_native_int(vmmlaq_s32(to_native_int(sum), as_bytes(a), as_bytes(b)));
}
#endif
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

}  // namespace headlight::HEADLIGHT_TARGET
