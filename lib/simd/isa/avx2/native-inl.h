// The part of the vocabulary that neither SIMD library has, or not safely, or not with the same bits, in intrinsics.
#pragma once

#include <cstdint>

#include "simd/isa/avx2/fold-inl.h"
#include "simd/isa/avx2/philox-inl.h"
#include "simd/isa/avx2/registers-inl.h"
#include "simd/isa/avx2/transpose-inl.h"
#include "simd/isa/avx2/values.h"
#include "simd/isa/optional_operations-inl.h"
#include "simd/vector_library-inl.h"

// With fewer flags the SIMD libraries fall back to a smaller set without a word.
#if !(defined(__AVX2__) && defined(__FMA__) && defined(__F16C__))
#error "these compiler flags are not those of avx2"
#endif

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE IntVec load_u8(const std::uint8_t* from) {
  return from_native_int(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}
HEADLIGHT_INLINE Vec load_i8(const std::int8_t* from) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  return from_native(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)));
}
HEADLIGHT_INLINE __m256i first_lanes(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
HEADLIGHT_INLINE Vec load_partial(const float* from, int count) {
  return from_native(_mm256_maskload_ps(from, first_lanes(count)));
}
HEADLIGHT_INLINE void store_partial(Vec v, float* to, int count) {
  _mm256_maskstore_ps(to, first_lanes(count), to_native(v));
}

HEADLIGHT_INLINE float sum_of_lanes(Vec v) { return fold_sum(fold_sum(to_native(v))); }
HEADLIGHT_INLINE float max_of_lanes(Vec v) { return fold_max(fold_max(to_native(v))); }

HEADLIGHT_INLINE Vec swap_pairs(Vec v) { return from_native(_mm256_permute_ps(to_native(v), 0xb1)); }
HEADLIGHT_INLINE Vec first_of_pairs(Vec v) { return from_native(_mm256_moveldup_ps(to_native(v))); }
HEADLIGHT_INLINE Vec second_of_pairs(Vec v) { return from_native(_mm256_movehdup_ps(to_native(v))); }

HEADLIGHT_INLINE IntVec load_u16(const std::uint16_t* from) {
  return from_native_int(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
HEADLIGHT_INLINE Vec load_f16(const std::uint16_t* from) {
  return from_native(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
}
// Pairs by a masked load, the last of an odd count by itself: nothing behind it is touched.
HEADLIGHT_INLINE __m128i first_numbers(const std::uint16_t* from, int count) {
  const __m128i index = _mm_setr_epi32(0, 1, 2, 3), whole = _mm_set1_epi32(count / 2);
  const __m128i pairs = _mm_maskload_epi32(reinterpret_cast<const int*>(from), _mm_cmpgt_epi32(whole, index));
  if (count % 2 == 0) return pairs;
  const __m128i last = _mm_set1_epi32(from[count - 1]);
  return _mm_or_si128(pairs, _mm_and_si128(last, _mm_cmpeq_epi32(whole, index)));
}
HEADLIGHT_INLINE Vec load_bf16_partial(const std::uint16_t* from, int count) {
  return from_native(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(first_numbers(from, count)), 16)));
}
HEADLIGHT_INLINE Vec load_f16_partial(const std::uint16_t* from, int count) {
  return from_native(_mm256_cvtph_ps(first_numbers(from, count)));
}
HEADLIGHT_INLINE void store_f16(Vec v, std::uint16_t* to) {
  const __m128i narrow = _mm256_cvtps_ph(to_native(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), narrow);
}

// The same choice of bytes from each half; and four of each stored.
HEADLIGHT_INLINE __m256i pick_bytes(IntVec v, __m128i order) {
  return _mm256_shuffle_epi8(to_native_int(v), _mm256_broadcastsi128_si256(order));
}
HEADLIGHT_INLINE void store_picked(IntVec v, __m128i order, void* to) {
  const __m256i picked = pick_bytes(v, order);
  const __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(picked), _mm256_extracti128_si256(picked, 1));
  _mm_storel_epi64(static_cast<__m128i*>(to), both);
}
HEADLIGHT_INLINE void store_i8(IntVec v, std::int8_t* to) {
  store_picked(v, _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1), to);
}
HEADLIGHT_INLINE void store_u16(IntVec v, std::uint16_t* to) {
  const __m256i picked = pick_bytes(v, _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(_mm256_permute4x64_epi64(picked, 0x08)));
}
HEADLIGHT_INLINE IntVec interleave_lower_bytes(IntVec a, IntVec b) {
  return from_native_int(_mm256_unpacklo_epi8(to_native_int(a), to_native_int(b)));
}
HEADLIGHT_INLINE IntVec interleave_upper_bytes(IntVec a, IntVec b) {
  return from_native_int(_mm256_unpackhi_epi8(to_native_int(a), to_native_int(b)));
}
HEADLIGHT_INLINE IntVec odd_bytes(IntVec v) { return from_native_int(_mm256_srai_epi16(to_native_int(v), 8)); }
HEADLIGHT_INLINE IntVec even_bytes(IntVec v) {
  return odd_bytes(from_native_int(_mm256_slli_epi16(to_native_int(v), 8)));
}
HEADLIGHT_INLINE IntVec dot_i16(IntVec a, IntVec b, IntVec sum) {
  return from_native_int(_mm256_add_epi32(to_native_int(sum), _mm256_madd_epi16(to_native_int(a), to_native_int(b))));
}

}  // namespace headlight::HEADLIGHT_TARGET

// What is made of these.
#include "simd/isa/bytes-inl.h"
#include "simd/isa/partial_bytes-inl.h"
#include "simd/isa/without_scalef-inl.h"
