// The halves of a vector of 256 bits, folded onto each other.
#pragma once

#include "simd/isa/x86-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE __m128 fold_sum(__m256 v) {
  return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}
HEADLIGHT_INLINE __m128 fold_max(__m256 v) {
  return _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}

}  // namespace headlight::HEADLIGHT_TARGET
