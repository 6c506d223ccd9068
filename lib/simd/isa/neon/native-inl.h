// The part of the vocabulary that neither SIMD library has, or not safely, or not with the same bits, in intrinsics.
// Nothing loads or stores by a mask: lanes go one by one. (Highway 1.0 reads the whole vector, and writes neighbours
// back.)
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "simd/isa/four_bytes-inl.h"
#include "simd/isa/neon/philox-inl.h"
#include "simd/isa/neon/registers-inl.h"
#include "simd/isa/neon/transpose-inl.h"
#include "simd/isa/neon/values.h"
#include "simd/isa/optional_operations-inl.h"
#include "simd/vector_library-inl.h"

// With fewer flags the SIMD libraries fall back to a smaller set without a word.
#if !(defined(__ARM_NEON) && defined(__aarch64__))
#error "these compiler flags are not those of neon"
#endif

namespace headlight::HEADLIGHT_TARGET {

HEADLIGHT_INLINE IntVec load_u8(const std::uint8_t* from) {
  const uint8x8_t bytes = vreinterpret_u8_s32(vdup_n_s32(four_bytes(from)));
  return from_native_int(vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(bytes)))));
}
HEADLIGHT_INLINE Vec load_i8(const std::int8_t* from) {
  const int8x8_t bytes = vreinterpret_s8_s32(vdup_n_s32(four_bytes(from)));
  return from_native(vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes)))));
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

HEADLIGHT_INLINE Vec swap_pairs(Vec v) { return from_native(vrev64q_f32(to_native(v))); }
HEADLIGHT_INLINE Vec first_of_pairs(Vec v) { return from_native(vtrn1q_f32(to_native(v), to_native(v))); }
HEADLIGHT_INLINE Vec second_of_pairs(Vec v) { return from_native(vtrn2q_f32(to_native(v), to_native(v))); }

HEADLIGHT_INLINE IntVec load_u16(const std::uint16_t* from) {
  return from_native_int(vreinterpretq_s32_u32(vmovl_u16(vld1_u16(from))));
}
HEADLIGHT_INLINE Vec load_f16(const std::uint16_t* from) {
  return from_native(vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from))));
}

HEADLIGHT_INLINE void store_i8(IntVec v, std::int8_t* to) {
  const int16x4_t halves = vmovn_s32(to_native_int(v));
  const std::int32_t bytes = vget_lane_s32(vreinterpret_s32_s8(vmovn_s16(vcombine_s16(halves, halves))), 0);
  __builtin_memcpy(to, &bytes, sizeof bytes);
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
HEADLIGHT_INLINE void store_f16(Vec v, std::uint16_t* to) {
  vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(to_native(v))));
}

}  // namespace headlight::HEADLIGHT_TARGET

// What is made of these.
#include "simd/isa/bytes-inl.h"
#include "simd/isa/partial_bytes-inl.h"
#include "simd/isa/partial_halves-inl.h"
#include "simd/isa/without_scalef-inl.h"
