// What neither SIMD library has, or has safely, or has with the same bits: the rest of the vocabulary in the compiler's
// intrinsics, shared by both back ends. Each of them includes this file last and gives NativeVec, NativeInt,
// to_native(), from_native() and from_native_int().
//
//  - Highway's masked load reads the whole vector on SSE4 and NEON (a fault at the end of a page), and its masked store
//  on
//    NEON writes neighbours back; xsimd 8.1 has neither. Here no byte past the lanes asked for is touched.
//  - Both libraries sum lanes in an order of their own; here it is the documented one.
#pragma once

#include <cstdint>

#if defined(__aarch64__)
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

namespace headlight::HEADLIGHT_TARGET {

#if defined(__AVX512F__)

// v · 2ⁿ in one instruction, for any n.
#define HEADLIGHT_HAS_SCALEF 1

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

#if defined(__AVX512BF16__)
// The two bfloat16 numbers in each lane.
HEADLIGHT_INLINE __m512bh as_pairs(Vec v) { return (__m512bh)_mm512_castps_si512(to_native(v)); }
HEADLIGHT_INLINE Vec dot_bf16(Vec a, Vec b, Vec sum) {
  return from_native(_mm512_dpbf16_ps(to_native(sum), as_pairs(a), as_pairs(b)));
}
HEADLIGHT_INLINE Vec narrow_to_bf16(Vec first, Vec second) {
  return from_native(_mm512_castsi512_ps((__m512i)_mm512_cvtne2ps_pbh(to_native(second), to_native(first))));
}
HEADLIGHT_INLINE Vec pair_to_bf16(Vec first, Vec second) {
  alignas(64) static constexpr std::uint16_t kInTurns[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                             21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                             11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const auto numbers = (__m512i)_mm512_cvtne2ps_pbh(to_native(second), to_native(first));
  return from_native(_mm512_castsi512_ps(_mm512_permutexvar_epi16(_mm512_load_si512(kInTurns), numbers)));
}
// Stores v rounded and returns true, unless it has subnormal numbers, which the instruction would take for 0.
HEADLIGHT_INLINE bool store_normal_bf16(Vec v, std::uint16_t* to) {
  constexpr int kSubnormal = 0x20;
  if (_mm512_fpclass_ps_mask(to_native(v), kSubnormal) != 0) [[unlikely]]
    return false;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(to_native(v)));
  return true;
}
#endif

HEADLIGHT_INLINE Mask bytes_not_zero(const std::uint8_t* from) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return from_native_mask(_mm_test_epi8_mask(bytes, bytes));
}

HEADLIGHT_INLINE __m256 lower_half(__m512 v) { return _mm512_castps512_ps256(v); }
HEADLIGHT_INLINE __m256 upper_half(__m512 v) { return _mm512_extractf32x8_ps(v, 1); }
HEADLIGHT_INLINE __m256 fold_sum(__m512 v) { return _mm256_add_ps(lower_half(v), upper_half(v)); }
HEADLIGHT_INLINE __m256 fold_max(__m512 v) { return _mm256_max_ps(lower_half(v), upper_half(v)); }

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
#if defined(__AVX512VNNI__)
HEADLIGHT_INLINE IntVec dot_bytes(IntVec a, IntVec b, IntVec sum) {
  return from_native_int(_mm512_dpbusd_epi32(to_native_int(sum), to_native_int(a), to_native_int(b)));
}
HEADLIGHT_INLINE void store_u8_crossed(IntVec v, std::uint8_t* to) {
  const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(_mm512_cvtepi32_epi8(to_native_int(v)), order));
}
#endif

#elif defined(__AVX2__)

HEADLIGHT_INLINE IntVec load_u8(const std::uint8_t* from) {
  return from_native_int(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
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

// The same choice of bytes from each half.
HEADLIGHT_INLINE __m256i pick_bytes(IntVec v, __m128i order) {
  return _mm256_shuffle_epi8(to_native_int(v), _mm256_broadcastsi128_si256(order));
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
#if defined(__AVXVNNI__)
HEADLIGHT_INLINE IntVec dot_bytes(IntVec a, IntVec b, IntVec sum) {
  return from_native_int(_mm256_dpbusd_avx_epi32(to_native_int(sum), to_native_int(a), to_native_int(b)));
}
HEADLIGHT_INLINE void store_u8_crossed(IntVec v, std::uint8_t* to) {
  const __m256i picked = pick_bytes(v, _mm_setr_epi8(0, 8, 4, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  const __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(picked), _mm256_extracti128_si256(picked, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), both);
}
#endif

#else  // 128 bits: no masked loads or stores, the lanes go one by one or in pairs

HEADLIGHT_INLINE std::int32_t four_bytes(const std::uint8_t* from) {
  std::int32_t bytes;
  __builtin_memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

#if defined(__aarch64__)
HEADLIGHT_INLINE IntVec load_u8(const std::uint8_t* from) {
  const uint8x8_t bytes = vreinterpret_u8_s32(vdup_n_s32(four_bytes(from)));
  return from_native_int(vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(bytes)))));
}
HEADLIGHT_INLINE Vec load_partial(const float* from, int count) {
  float32x4_t v = vdupq_n_f32(0.0f);
  if (count > 0) v = vld1q_lane_f32(from, v, 0);
  if (count > 1) v = vld1q_lane_f32(from + 1, v, 1);
  if (count > 2) v = vld1q_lane_f32(from + 2, v, 2);
  if (count > 3) v = vld1q_lane_f32(from + 3, v, 3);
  return from_native(v);
}
HEADLIGHT_INLINE void store_partial(Vec v, float* to, int count) {
  if (count > 0) vst1q_lane_f32(to, to_native(v), 0);
  if (count > 1) vst1q_lane_f32(to + 1, to_native(v), 1);
  if (count > 2) vst1q_lane_f32(to + 2, to_native(v), 2);
  if (count > 3) vst1q_lane_f32(to + 3, to_native(v), 3);
}
HEADLIGHT_INLINE IntVec load_u16(const std::uint16_t* from) {
  return from_native_int(vreinterpretq_s32_u32(vmovl_u16(vld1_u16(from))));
}
HEADLIGHT_INLINE Vec load_f16(const std::uint16_t* from) {
  return from_native(vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))));
}

HEADLIGHT_INLINE void store_u16(IntVec v, std::uint16_t* to) {
  vst1_u16(to, vmovn_u32(vreinterpretq_u32_s32(to_native_int(v))));
}
HEADLIGHT_INLINE int8x16_t as_bytes(IntVec v) { return vreinterpretq_s8_s32(to_native_int(v)); }
HEADLIGHT_INLINE IntVec interleave_lower_bytes(IntVec a, IntVec b) {
  return from_native_int(vreinterpretq_s32_s8(vzip1q_s8(as_bytes(a), as_bytes(b))));
}
HEADLIGHT_INLINE IntVec interleave_upper_bytes(IntVec a, IntVec b) {
  return from_native_int(vreinterpretq_s32_s8(vzip2q_s8(as_bytes(a), as_bytes(b))));
}
HEADLIGHT_INLINE int16x8_t as_halves(IntVec v) { return vreinterpretq_s16_s32(to_native_int(v)); }
HEADLIGHT_INLINE IntVec from_halves(int16x8_t v) { return from_native_int(vreinterpretq_s32_s16(v)); }
HEADLIGHT_INLINE IntVec odd_bytes(IntVec v) { return from_halves(vshrq_n_s16(as_halves(v), 8)); }
HEADLIGHT_INLINE IntVec even_bytes(IntVec v) { return odd_bytes(from_halves(vshlq_n_s16(as_halves(v), 8))); }
HEADLIGHT_INLINE IntVec dot_i16(IntVec a, IntVec b, IntVec sum) {
  const int32x4_t lower = vmull_s16(vget_low_s16(as_halves(a)), vget_low_s16(as_halves(b)));
  const int32x4_t upper = vmull_high_s16(as_halves(a), as_halves(b));
  return from_native_int(vaddq_s32(to_native_int(sum), vpaddq_s32(lower, upper)));
}
#if defined(__ARM_FEATURE_DOTPROD)
HEADLIGHT_INLINE IntVec dot_bytes(IntVec a, IntVec b, IntVec sum) {
  return from_native_int(vdotq_s32(to_native_int(sum), as_bytes(a), as_bytes(b)));
}
HEADLIGHT_INLINE void store_u8_crossed(IntVec v, std::uint8_t* to) {
  const uint8x8_t order = vcreate_u8(0x0c040800);
  const uint8x8_t bytes = vqtbl1_u8(vreinterpretq_u8_s32(to_native_int(v)), order);
  const std::uint32_t word = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
  __builtin_memcpy(to, &word, sizeof word);
}
#endif
HEADLIGHT_INLINE void store_f16(Vec v, std::uint16_t* to) {
  vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(to_native(v))));
}
#else
HEADLIGHT_INLINE IntVec load_u8(const std::uint8_t* from) {
  return from_native_int(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four_bytes(from))));
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
HEADLIGHT_INLINE IntVec load_u16(const std::uint16_t* from) {
  return from_native_int(_mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
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
#endif

#endif

// Sums and maxima fold the upper half onto the lower one until one lane is left.
#if defined(__aarch64__)

HEADLIGHT_INLINE float sum_of_lanes(Vec v) {
  const float32x2_t pairs = vadd_f32(vget_low_f32(to_native(v)), vget_high_f32(to_native(v)));
  return vget_lane_f32(pairs, 0) + vget_lane_f32(pairs, 1);
}
HEADLIGHT_INLINE float max_of_lanes(Vec v) {
  const float32x2_t low = vget_low_f32(to_native(v));
  const float32x2_t high = vget_high_f32(to_native(v));
  const float32x2_t pairs = vbsl_f32(vcgt_f32(low, high), low, high);
  return vget_lane_f32(pairs, 0) > vget_lane_f32(pairs, 1) ? vget_lane_f32(pairs, 0) : vget_lane_f32(pairs, 1);
}

#else

#if defined(__AVX2__)
HEADLIGHT_INLINE __m128 fold_sum(__m256 v) {
  return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}
HEADLIGHT_INLINE __m128 fold_max(__m256 v) {
  return _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
}
#endif
HEADLIGHT_INLINE float fold_sum(__m128 v) {
  const __m128 pairs = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_movehdup_ps(pairs)));
}
HEADLIGHT_INLINE float fold_max(__m128 v) {
  const __m128 pairs = _mm_max_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_max_ss(pairs, _mm_movehdup_ps(pairs)));
}

HEADLIGHT_INLINE float sum_of_lanes(Vec v) {
#if defined(__AVX512F__)
  return fold_sum(fold_sum(fold_sum(to_native(v))));
#elif defined(__AVX2__)
  return fold_sum(fold_sum(to_native(v)));
#else
  return fold_sum(to_native(v));
#endif
}
HEADLIGHT_INLINE float max_of_lanes(Vec v) {
#if defined(__AVX512F__)
  return fold_max(fold_max(fold_max(to_native(v))));
#elif defined(__AVX2__)
  return fold_max(fold_max(to_native(v)));
#else
  return fold_max(to_native(v));
#endif
}

#endif

}  // namespace headlight::HEADLIGHT_TARGET

#include "simd/transpose-inl.h"
#if defined(HEADLIGHT_MULTIPLIES_QUADS)
#include "simd/vector_quads-inl.h"
#endif
