// What the instruction sets of x86-64 share: the intrinsics, and the last folds of a vector.
#pragma once

#include "simd/target-inl.h"

// g++ 12 takes the operands that AVX-512 intrinsics leave undefined on purpose for uninitialised variables.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE float fold_sum(__m128 v) {
  const __m128 pairs = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_movehdup_ps(pairs)));
}
HEADLIGHT_INLINE float fold_max(__m128 v) {
  const __m128 pairs = _mm_max_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_max_ss(pairs, _mm_movehdup_ps(pairs)));
}

}  // namespace headlight::HEADLIGHT_TARGET
