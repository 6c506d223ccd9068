// The part of the vocabulary that neither SIMD library has, or not safely, or not with the same bits, in intrinsics.
// Nothing loads or stores by a mask: lanes go one by one, or in pairs. (Highway 1.0 reads the whole vector.)
#pragma once

#include <cstdint>

#include "simd/isa/four_bytes-inl.h"
#include "simd/isa/optional_operations-inl.h"
#include "simd/isa/sse4/philox-inl.h"
#include "simd/isa/sse4/registers-inl.h"
#include "simd/isa/sse4/transpose-inl.h"
#include "simd/isa/sse4/values.h"
#include "simd/isa/x86-inl.h"
#include "simd/vector_library-inl.h"

// With fewer flags the SIMD libraries fall back to a smaller set without a word.
#if !(defined(__SSE4_2__))
#error "these compiler flags are not those of sse4"
#endif

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE IntVec load_u8(const std::uint8_t* from) {
  return from_native_int(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four_bytes(from))));
}
HEADLIGHT_INLINE Vec load_i8(const std::int8_t* from) {
  return from_native(_mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four_bytes(from)))));
}
// Calls: four choices each, which would stand in every tile that may end within a vector.
[[gnu::noinline]] inline Vec load_partial(const float* from, int count) {
  if (count >= 4) return from_native(_mm_loadu_ps(from));
  __m128 v = _mm_setzero_ps();
  if (count >= 2) v = _mm_loadl_pi(v, reinterpret_cast<const __m64*>(from));
  if (count == 1) v = _mm_load_ss(from);
  if (count == 3) v = _mm_insert_ps(v, _mm_load_ss(from + 2), 0x20);
  return from_native(v);
}
[[gnu::noinline]] inline void store_partial(Vec v, float* to, int count) {
  const __m128 native = to_native(v);
  if (count >= 4) return _mm_storeu_ps(to, native);
  if (count >= 2) _mm_storel_pi(reinterpret_cast<__m64*>(to), native);
  if (count == 1) _mm_store_ss(to, native);
  if (count == 3) _mm_store_ss(to + 2, _mm_movehl_ps(native, native));
}

HEADLIGHT_INLINE float sum_of_lanes(Vec v) { return fold_sum(to_native(v)); }
HEADLIGHT_INLINE float max_of_lanes(Vec v) { return fold_max(to_native(v)); }

HEADLIGHT_INLINE Vec swap_pairs(Vec v) { return from_native(_mm_shuffle_ps(to_native(v), to_native(v), 0xb1)); }
HEADLIGHT_INLINE Vec first_of_pairs(Vec v) { return from_native(_mm_moveldup_ps(to_native(v))); }
HEADLIGHT_INLINE Vec second_of_pairs(Vec v) { return from_native(_mm_movehdup_ps(to_native(v))); }

HEADLIGHT_INLINE IntVec load_u16(const std::uint16_t* from) {
  return from_native_int(_mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
}

HEADLIGHT_INLINE void store_i8(IntVec v, std::int8_t* to) {
  const __m128i order = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const std::int32_t bytes = _mm_cvtsi128_si32(_mm_shuffle_epi8(to_native_int(v), order));
  __builtin_memcpy(to, &bytes, sizeof bytes);
}
HEADLIGHT_INLINE void store_u16(IntVec v, std::uint16_t* to) {
  const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(to_native_int(v), order));
}
HEADLIGHT_INLINE IntVec interleave_lower_bytes(IntVec a, IntVec b) {
  return from_native_int(_mm_unpacklo_epi8(to_native_int(a), to_native_int(b)));
}
HEADLIGHT_INLINE IntVec interleave_upper_bytes(IntVec a, IntVec b) {
  return from_native_int(_mm_unpackhi_epi8(to_native_int(a), to_native_int(b)));
}
HEADLIGHT_INLINE IntVec odd_bytes(IntVec v) { return from_native_int(_mm_srai_epi16(to_native_int(v), 8)); }
HEADLIGHT_INLINE IntVec even_bytes(IntVec v) { return odd_bytes(from_native_int(_mm_slli_epi16(to_native_int(v), 8))); }
HEADLIGHT_INLINE IntVec dot_i16(IntVec a, IntVec b, IntVec sum) {
  return from_native_int(_mm_add_epi32(to_native_int(sum), _mm_madd_epi16(to_native_int(a), to_native_int(b))));
}

}  // namespace headlight::HEADLIGHT_TARGET

// What is made of these.
#include "simd/isa/bytes-inl.h"
#include "simd/isa/partial_bytes-inl.h"
#include "simd/isa/partial_halves-inl.h"
#include "simd/isa/without_float16-inl.h"
#include "simd/isa/without_scalef-inl.h"
