// The part of the vocabulary that neither SIMD library has, or not safely, or not with the same bits, in intrinsics.
// Loads and stores by a mask touch nothing beside their lanes.
#pragma once

#include <cstdint>

#include "simd/isa/avx2/fold-inl.h"
#include "simd/isa/avx512/philox-inl.h"
#include "simd/isa/avx512/registers-inl.h"
#include "simd/isa/avx512/transpose-inl.h"
#include "simd/isa/avx512/values.h"
#include "simd/isa/optional_operations-inl.h"
#include "simd/vector_library-inl.h"

// With fewer flags the SIMD libraries fall back to a smaller set without a word.
#if !(defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__))
#error "these compiler flags are not those of avx512"
#endif

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE __mmask16 first_bits(int count) { return static_cast<__mmask16>((1u << count) - 1u); }

HEADLIGHT_INLINE Vec load_partial(const float* from, int count) {
  return from_native(_mm512_maskz_loadu_ps(first_bits(count), from));
}
HEADLIGHT_INLINE void store_partial(Vec v, float* to, int count) {
  _mm512_mask_storeu_ps(to, first_bits(count), to_native(v));
}

HEADLIGHT_INLINE Vec scale_by_power_of_two(Vec v, Vec n) {
  return from_native(_mm512_scalef_ps(to_native(v), to_native(n)));
}

// Operations in chosen lanes, +0 in the others, which raise no exception and cost no assist.
using LaneBits = __mmask16;
// True for NaN.
HEADLIGHT_INLINE LaneBits not_less_equal(Vec a, Vec b) {
  return _mm512_cmp_ps_mask(to_native(a), to_native(b), _CMP_NLE_UQ);
}
HEADLIGHT_INLINE Vec mul_where(LaneBits chosen, Vec a, Vec b) {
  return from_native(_mm512_maskz_mul_ps(chosen, to_native(a), to_native(b)));
}
HEADLIGHT_INLINE Vec sub_where(LaneBits chosen, Vec a, Vec b) {
  return from_native(_mm512_maskz_sub_ps(chosen, to_native(a), to_native(b)));
}
HEADLIGHT_INLINE Vec scale_by_power_of_two_where(LaneBits chosen, Vec v, Vec n) {
  return from_native(_mm512_maskz_scalef_ps(chosen, to_native(v), to_native(n)));
}

HEADLIGHT_INLINE Mask bytes_not_zero(const std::uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return from_native_mask(_mm_test_epi8_mask(bytes, bytes));
}

HEADLIGHT_INLINE __m256 lower_half(__m512 v) { return _mm512_castps512_ps256(v); }
HEADLIGHT_INLINE __m256 upper_half(__m512 v) { return _mm512_extractf32x8_ps(v, 1); }
HEADLIGHT_INLINE __m256 fold_sum(__m512 v) { return _mm256_add_ps(lower_half(v), upper_half(v)); }
HEADLIGHT_INLINE __m256 fold_max(__m512 v) { return _mm256_max_ps(lower_half(v), upper_half(v)); }
HEADLIGHT_INLINE float sum_of_lanes(Vec v) { return fold_sum(fold_sum(fold_sum(to_native(v)))); }
HEADLIGHT_INLINE float max_of_lanes(Vec v) { return fold_max(fold_max(fold_max(to_native(v)))); }

HEADLIGHT_INLINE Vec swap_pairs(Vec v) { return from_native(_mm512_permute_ps(to_native(v), 0xb1)); }
HEADLIGHT_INLINE Vec first_of_pairs(Vec v) { return from_native(_mm512_moveldup_ps(to_native(v))); }
HEADLIGHT_INLINE Vec second_of_pairs(Vec v) { return from_native(_mm512_movehdup_ps(to_native(v))); }

HEADLIGHT_INLINE IntVec load_u16(const std::uint16_t* from) {
  return from_native_int(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
}
HEADLIGHT_INLINE Vec load_f16(const std::uint16_t* from) {
  return from_native(_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
}
HEADLIGHT_INLINE __m256i first_numbers(const std::uint16_t* from, int count) {
  return _mm256_maskz_loadu_epi16(first_bits(count), from);
}
HEADLIGHT_INLINE Vec load_bf16_partial(const std::uint16_t* from, int count) {
  return from_native(_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(first_numbers(from, count)), 16)));
}
HEADLIGHT_INLINE Vec load_f16_partial(const std::uint16_t* from, int count) {
  return from_native(_mm512_cvtph_ps(first_numbers(from, count)));
}
HEADLIGHT_INLINE void store_f16(Vec v, std::uint16_t* to) {
  const __m256i narrow = _mm512_cvtps_ph(to_native(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrow);
}

HEADLIGHT_INLINE Vec load_i8(const std::int8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return from_native(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)));
}
HEADLIGHT_INLINE Vec load_i8_partial(const std::int8_t* from, int count) {
  return from_native(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(first_bits(count), from))));
}

HEADLIGHT_INLINE void store_i8(IntVec v, std::int8_t* to) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(to_native_int(v)));
}
HEADLIGHT_INLINE void store_u16(IntVec v, std::uint16_t* to) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(to_native_int(v)));
}
HEADLIGHT_INLINE IntVec interleave_lower_bytes(IntVec a, IntVec b) {
  return from_native_int(_mm512_unpacklo_epi8(to_native_int(a), to_native_int(b)));
}
HEADLIGHT_INLINE IntVec interleave_upper_bytes(IntVec a, IntVec b) {
  return from_native_int(_mm512_unpackhi_epi8(to_native_int(a), to_native_int(b)));
}
HEADLIGHT_INLINE IntVec odd_bytes(IntVec v) { return from_native_int(_mm512_srai_epi16(to_native_int(v), 8)); }
HEADLIGHT_INLINE IntVec even_bytes(IntVec v) {
  return odd_bytes(from_native_int(_mm512_slli_epi16(to_native_int(v), 8)));
}
HEADLIGHT_INLINE IntVec dot_i16(IntVec a, IntVec b, IntVec sum) {
  return from_native_int(_mm512_add_epi32(to_native_int(sum), _mm512_madd_epi16(to_native_int(a), to_native_int(b))));
}

}  // namespace headlight::HEADLIGHT_TARGET
