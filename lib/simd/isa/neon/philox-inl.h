// What Philox and dropout need of integers.
#pragma once

#include <cstdint>

#include "simd/isa/whole_words-inl.h"

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE WideProduct<Words> mul_wide(Words a, std::uint32_t by) {
  const uint32x4_t words = vreinterpretq_u32_s32(to_native_int(a));
  const uint32x4_t first = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(words), by));
  const uint32x4_t second = vreinterpretq_u32_u64(vmull_n_u32(vget_high_u32(words), by));
  return {from_native_int(vreinterpretq_s32_u32(vuzp2q_u32(first, second))),
          from_native_int(vreinterpretq_s32_u32(vuzp1q_u32(first, second)))};
}
HEADLIGHT_INLINE Words xor_words(Words a, Words b, std::uint32_t word) {
  return from_native_int(veorq_s32(veorq_s32(to_native_int(a), to_native_int(b)), to_native_int(all_words(word))));
}
HEADLIGHT_INLINE void in_order(const Words (&words)[4], IntVec (&ordered)[4]) {
  const int32x4_t w0 = to_native_int(words[0]), w1 = to_native_int(words[1]);
  const int32x4_t w2 = to_native_int(words[2]), w3 = to_native_int(words[3]);
  const int64x2_t lower01 = vreinterpretq_s64_s32(vzip1q_s32(w0, w1));
  const int64x2_t upper01 = vreinterpretq_s64_s32(vzip2q_s32(w0, w1));
  const int64x2_t lower23 = vreinterpretq_s64_s32(vzip1q_s32(w2, w3));
  const int64x2_t upper23 = vreinterpretq_s64_s32(vzip2q_s32(w2, w3));
  ordered[0] = from_native_int(vreinterpretq_s32_s64(vzip1q_s64(lower01, lower23)));
  ordered[1] = from_native_int(vreinterpretq_s32_s64(vzip2q_s64(lower01, lower23)));
  ordered[2] = from_native_int(vreinterpretq_s32_s64(vzip1q_s64(upper01, upper23)));
  ordered[3] = from_native_int(vreinterpretq_s32_s64(vzip2q_s64(upper01, upper23)));
}
HEADLIGHT_INLINE Vec keep_where_at_least(IntVec words, std::uint32_t threshold, Vec v) {
  const uint32x4_t kept = vcgeq_u32(vreinterpretq_u32_s32(to_native_int(words)), vdupq_n_u32(threshold));
  return from_native(vreinterpretq_f32_u32(vandq_u32(kept, vreinterpretq_u32_f32(to_native(v)))));
}

}  // namespace headlight::HEADLIGHT_TARGET
