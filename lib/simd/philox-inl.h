// Philox4x32-10 (runtime/philox.h) for kLanes counters at once, and the one use that kernels have for it: dropout.
#pragma once

#include <cstdint>

#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

struct WideProduct {
  IntVec high;
  IntVec low;
};

// mul_wide: the 64-bit products of unsigned lanes, in two halves. xor_int: a ⊕ b ⊕ c. interleave_words: in each block
// of four lanes the 4 × 4 transpose. keep_where_at_least: v where the unsigned word ≥ threshold, else +0.
#if defined(HEADLIGHT_SIMD_SCALAR_TARGET)

HEADLIGHT_INLINE WideProduct mul_wide(IntVec a, std::uint32_t by) {
  const std::uint64_t product = std::uint64_t{static_cast<std::uint32_t>(a)} * by;
  return {static_cast<IntVec>(product >> 32), static_cast<IntVec>(product & 0xFFFFFFFFu)};
}
HEADLIGHT_INLINE IntVec xor_int(IntVec a, IntVec b, IntVec c) { return a ^ b ^ c; }
HEADLIGHT_INLINE void interleave_words(IntVec (&)[4]) {}
HEADLIGHT_INLINE Vec keep_where_at_least(IntVec words, std::uint32_t threshold, Vec v) {
  return static_cast<std::uint32_t>(words) >= threshold ? v : 0.0f;
}

#elif defined(__aarch64__)

HEADLIGHT_INLINE WideProduct mul_wide(IntVec a, std::uint32_t by) {
  const uint32x4_t words = vreinterpretq_u32_s32(to_native_int(a));
  const uint32x4_t first = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(words), by));
  const uint32x4_t second = vreinterpretq_u32_u64(vmull_n_u32(vget_high_u32(words), by));
  return {from_native_int(vreinterpretq_s32_u32(vuzp2q_u32(first, second))),
          from_native_int(vreinterpretq_s32_u32(vuzp1q_u32(first, second)))};
}
HEADLIGHT_INLINE IntVec xor_int(IntVec a, IntVec b, IntVec c) {
  return from_native_int(veorq_s32(veorq_s32(to_native_int(a), to_native_int(b)), to_native_int(c)));
}
HEADLIGHT_INLINE void interleave_words(IntVec (&words)[4]) {
  const int32x4_t w0 = to_native_int(words[0]), w1 = to_native_int(words[1]);
  const int32x4_t w2 = to_native_int(words[2]), w3 = to_native_int(words[3]);
  const int64x2_t lower01 = vreinterpretq_s64_s32(vzip1q_s32(w0, w1));
  const int64x2_t upper01 = vreinterpretq_s64_s32(vzip2q_s32(w0, w1));
  const int64x2_t lower23 = vreinterpretq_s64_s32(vzip1q_s32(w2, w3));
  const int64x2_t upper23 = vreinterpretq_s64_s32(vzip2q_s32(w2, w3));
  words[0] = from_native_int(vreinterpretq_s32_s64(vzip1q_s64(lower01, lower23)));
  words[1] = from_native_int(vreinterpretq_s32_s64(vzip2q_s64(lower01, lower23)));
  words[2] = from_native_int(vreinterpretq_s32_s64(vzip1q_s64(upper01, upper23)));
  words[3] = from_native_int(vreinterpretq_s32_s64(vzip2q_s64(upper01, upper23)));
}
HEADLIGHT_INLINE Vec keep_where_at_least(IntVec words, std::uint32_t threshold, Vec v) {
  const uint32x4_t kept = vcgeq_u32(vreinterpretq_u32_s32(to_native_int(words)), vdupq_n_u32(threshold));
  return from_native(vreinterpretq_f32_u32(vandq_u32(kept, vreinterpretq_u32_f32(to_native(v)))));
}

#else

// x86 multiplies the even lanes; the odd ones are moved there for a second product, and each half comes together again.
#if defined(__AVX512F__)
#define HEADLIGHT_WIDE(operation) _mm512_##operation
#elif defined(__AVX2__)
#define HEADLIGHT_WIDE(operation) _mm256_##operation
#else
#define HEADLIGHT_WIDE(operation) _mm_##operation
#endif

HEADLIGHT_INLINE WideProduct mul_wide(IntVec a, std::uint32_t by) {
  const auto factor = HEADLIGHT_WIDE(set1_epi32)(static_cast<int>(by));
  const auto words = to_native_int(a);
  const auto even = HEADLIGHT_WIDE(mul_epu32)(words, factor);
  const auto odd = HEADLIGHT_WIDE(mul_epu32)(HEADLIGHT_WIDE(srli_epi64)(words, 32), factor);
#if defined(__AVX512F__)
  return {from_native_int(_mm512_mask_shuffle_epi32(odd, 0x5555, even, static_cast<_MM_PERM_ENUM>(0xF5))),
          from_native_int(_mm512_mask_shuffle_epi32(even, 0xAAAA, odd, static_cast<_MM_PERM_ENUM>(0xA0)))};
#elif defined(__AVX2__)
  return {from_native_int(_mm256_blend_epi32(_mm256_shuffle_epi32(even, 0xF5), odd, 0xAA)),
          from_native_int(_mm256_blend_epi32(even, _mm256_shuffle_epi32(odd, 0xA0), 0xAA))};
#else
  return {from_native_int(_mm_blend_epi16(_mm_shuffle_epi32(even, 0xF5), odd, 0xCC)),
          from_native_int(_mm_blend_epi16(even, _mm_shuffle_epi32(odd, 0xA0), 0xCC))};
#endif
}

HEADLIGHT_INLINE IntVec xor_int(IntVec a, IntVec b, IntVec c) {
#if defined(__AVX512F__)
  return from_native_int(_mm512_ternarylogic_epi32(to_native_int(a), to_native_int(b), to_native_int(c), 0x96));
#elif defined(__AVX2__)
  return from_native_int(_mm256_xor_si256(_mm256_xor_si256(to_native_int(a), to_native_int(b)), to_native_int(c)));
#else
  return from_native_int(_mm_xor_si128(_mm_xor_si128(to_native_int(a), to_native_int(b)), to_native_int(c)));
#endif
}

HEADLIGHT_INLINE void interleave_words(IntVec (&words)[4]) {
  const auto w0 = to_native_int(words[0]), w1 = to_native_int(words[1]);
  const auto w2 = to_native_int(words[2]), w3 = to_native_int(words[3]);
  const auto lower01 = HEADLIGHT_WIDE(unpacklo_epi32)(w0, w1), upper01 = HEADLIGHT_WIDE(unpackhi_epi32)(w0, w1);
  const auto lower23 = HEADLIGHT_WIDE(unpacklo_epi32)(w2, w3), upper23 = HEADLIGHT_WIDE(unpackhi_epi32)(w2, w3);
  words[0] = from_native_int(HEADLIGHT_WIDE(unpacklo_epi64)(lower01, lower23));
  words[1] = from_native_int(HEADLIGHT_WIDE(unpackhi_epi64)(lower01, lower23));
  words[2] = from_native_int(HEADLIGHT_WIDE(unpacklo_epi64)(upper01, upper23));
  words[3] = from_native_int(HEADLIGHT_WIDE(unpackhi_epi64)(upper01, upper23));
}

HEADLIGHT_INLINE Vec keep_where_at_least(IntVec words, std::uint32_t threshold, Vec v) {
  const auto least = HEADLIGHT_WIDE(set1_epi32)(static_cast<int>(threshold));
  const auto native = to_native_int(words);
#if defined(__AVX512F__)
  return from_native(_mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask(native, least), to_native(v)));
#elif defined(__AVX2__)
  const __m256i kept = _mm256_cmpeq_epi32(_mm256_max_epu32(native, least), native);
  return from_native(_mm256_and_ps(_mm256_castsi256_ps(kept), to_native(v)));
#else
  const __m128i kept = _mm_cmpeq_epi32(_mm_max_epu32(native, least), native);
  return from_native(_mm_and_ps(_mm_castsi128_ps(kept), to_native(v)));
#endif
}

#undef HEADLIGHT_WIDE

#endif

HEADLIGHT_INLINE IntVec broadcast_word(std::uint32_t word) { return broadcast_int(static_cast<std::int32_t>(word)); }

// The words of the counters in the lanes of c, under one key.
HEADLIGHT_INLINE void philox4x32(IntVec (&c)[4], std::uint32_t key_low, std::uint32_t key_high) {
  constexpr std::uint32_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u;
  constexpr std::uint32_t kW0 = 0x9E3779B9u, kW1 = 0xBB67AE85u;
#pragma GCC unroll 10
  for (std::uint32_t round = 0; round < 10; ++round) {
    const WideProduct product0 = mul_wide(c[0], kM0);
    const WideProduct product1 = mul_wide(c[2], kM1);
    c[0] = xor_int(product1.high, c[1], broadcast_word(key_low + round * kW0));
    c[2] = xor_int(product0.high, c[3], broadcast_word(key_high + round * kW1));
    c[1] = product1.low;
    c[3] = product0.low;
  }
}

// One row of dropout: everything of the counter but its first word.
struct DropoutRow {
  std::uint32_t key_low;
  std::uint32_t key_high;
  std::uint32_t row;
  std::uint32_t plane;
  std::uint32_t stream;
};

// Which counter a lane computes, so that interleave_words leaves consecutive ones side by side: lane 4 b + k the one of
// block b of the k-th vector. As the bits of floats, for they are loaded as such.
struct PhiloxLanes {
  float bits[16];
};
consteval PhiloxLanes philox_lanes() {
  PhiloxLanes lanes{};
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.bits[lane] = __builtin_bit_cast(float, lane % 4 * (kLanes / 4) + lane / 4);
  }
  return lanes;
}
alignas(64) inline constexpr PhiloxLanes kPhiloxLanes = philox_lanes();

// The words of the row's elements 4·group … 4·group + 4·kLanes − 1: words[k] those of elements 4·group + k·kLanes …
HEADLIGHT_INLINE void dropout_words(const DropoutRow& row, std::uint32_t group, IntVec (&words)[4]) {
  words[0] = add_int(broadcast_word(group), as_int(load(kPhiloxLanes.bits)));
  words[1] = broadcast_word(row.row);
  words[2] = broadcast_word(row.plane);
  words[3] = broadcast_word(row.stream);
  philox4x32(words, row.key_low, row.key_high);
  interleave_words(words);
}

}  // namespace headlight::HEADLIGHT_TARGET
