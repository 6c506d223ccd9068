// NEON with BF16.
#pragma once

#include "simd/isa/neon/quads-inl.h"

namespace headlight::HEADLIGHT_TARGET {

inline constexpr FeatureValues kFeature = {.dots_bfloat16 = true, .multiplies_quads = true};

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

}  // namespace headlight::HEADLIGHT_TARGET
