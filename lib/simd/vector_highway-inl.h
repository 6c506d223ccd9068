// The vocabulary over Google Highway, compiled header-only and for one static target.
#pragma once

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "simd/target-inl.h"

namespace headlight::HEADLIGHT_TARGET {

static_assert(HWY_TARGET == HEADLIGHT_HIGHWAY_TARGET, "Highway took another target than these flags were meant for");

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::RebindToSigned<FloatTag>;
using Vec = hn::Vec<FloatTag>;
using IntVec = hn::Vec<IntTag>;
using Mask = hn::Mask<FloatTag>;

inline constexpr FloatTag kFloat{};
inline constexpr IntTag kInt{};
inline constexpr int kLanes = static_cast<int>(HWY_MAX_BYTES / sizeof(float));

HEADLIGHT_INLINE auto to_native(Vec v) { return v.raw; }
HEADLIGHT_INLINE auto to_native_int(IntVec v) { return v.raw; }
template <typename Native>
HEADLIGHT_INLINE Vec from_native(Native v) {
  return Vec{v};
}
template <typename Native>
HEADLIGHT_INLINE IntVec from_native_int(Native v) {
  return IntVec{v};
}

template <typename Native>
HEADLIGHT_INLINE Mask from_native_mask(Native bits) {
  return Mask{bits};
}

HEADLIGHT_INLINE Vec zero() { return hn::Zero(kFloat); }
HEADLIGHT_INLINE Vec broadcast(float value) { return hn::Set(kFloat, value); }
// Highway 1.0 makes them one by one each time, and reads them back before they are all stored.
HEADLIGHT_INLINE Vec lane_index() { return hn::Load(kFloat, kLaneIndices); }
HEADLIGHT_INLINE Vec load(const float* from) { return hn::LoadU(kFloat, from); }
HEADLIGHT_INLINE void store(Vec v, float* to) { hn::StoreU(v, kFloat, to); }

HEADLIGHT_INLINE Vec add(Vec a, Vec b) { return hn::Add(a, b); }
HEADLIGHT_INLINE Vec sub(Vec a, Vec b) { return hn::Sub(a, b); }
HEADLIGHT_INLINE Vec mul(Vec a, Vec b) { return hn::Mul(a, b); }
HEADLIGHT_INLINE Vec div(Vec a, Vec b) { return hn::Div(a, b); }
HEADLIGHT_INLINE Vec sqrt(Vec a) { return hn::Sqrt(a); }
HEADLIGHT_INLINE Vec fma(Vec a, Vec b, Vec c) { return hn::MulAdd(a, b, c); }
HEADLIGHT_INLINE Vec fnma(Vec a, Vec b, Vec c) { return hn::NegMulAdd(a, b, c); }
HEADLIGHT_INLINE Vec abs(Vec a) { return hn::Abs(a); }
HEADLIGHT_INLINE Vec neg(Vec a) { return hn::Neg(a); }
HEADLIGHT_INLINE Vec copysign(Vec magnitude, Vec sign) { return hn::CopySign(magnitude, sign); }
HEADLIGHT_INLINE Vec round(Vec a) { return hn::Round(a); }

HEADLIGHT_INLINE Mask less(Vec a, Vec b) { return hn::Lt(a, b); }
HEADLIGHT_INLINE Mask less_equal(Vec a, Vec b) { return hn::Le(a, b); }
HEADLIGHT_INLINE Mask equal(Vec a, Vec b) { return hn::Eq(a, b); }
// Not Ne(a, a): on AVX Highway 1.0.3 compares in order, which is false for NaN.
HEADLIGHT_INLINE Mask is_nan(Vec a) { return hn::Not(hn::Eq(a, a)); }
HEADLIGHT_INLINE Mask mask_first(int count) { return hn::FirstN(kFloat, static_cast<std::size_t>(count)); }
HEADLIGHT_INLINE Mask mask_and(Mask a, Mask b) { return hn::And(a, b); }
HEADLIGHT_INLINE Mask mask_or(Mask a, Mask b) { return hn::Or(a, b); }
HEADLIGHT_INLINE Mask mask_not(Mask a) { return hn::Not(a); }
HEADLIGHT_INLINE bool any_of(Mask a) { return !hn::AllFalse(kFloat, a); }
HEADLIGHT_INLINE Vec select(Mask mask, Vec yes, Vec no) { return hn::IfThenElse(mask, yes, no); }

// On x86 Highway's maximum is the instruction itself; that of NEON gives NaN and +0 where the x86 rule gives b.
HEADLIGHT_INLINE Vec max(Vec a, Vec b) {
#if HWY_ARCH_X86
  return hn::Max(a, b);
#else
  return select(less(b, a), a, b);
#endif
}
HEADLIGHT_INLINE Vec min(Vec a, Vec b) {
#if HWY_ARCH_X86
  return hn::Min(a, b);
#else
  return select(less(a, b), a, b);
#endif
}

HEADLIGHT_INLINE IntVec broadcast_int(std::int32_t value) { return hn::Set(kInt, value); }
HEADLIGHT_INLINE IntVec as_int(Vec v) { return hn::BitCast(kInt, v); }
HEADLIGHT_INLINE Vec as_float(IntVec v) { return hn::BitCast(kFloat, v); }
HEADLIGHT_INLINE IntVec add_int(IntVec a, IntVec b) { return hn::Add(a, b); }
HEADLIGHT_INLINE IntVec sub_int(IntVec a, IntVec b) { return hn::Sub(a, b); }
HEADLIGHT_INLINE IntVec mul_int(IntVec a, IntVec b) { return hn::Mul(a, b); }
HEADLIGHT_INLINE Vec to_float(IntVec v) { return hn::ConvertTo(kFloat, v); }
HEADLIGHT_INLINE IntVec and_int(IntVec a, IntVec b) { return hn::And(a, b); }
template <int kBits>
HEADLIGHT_INLINE IntVec shift_left(IntVec v) {
  return hn::ShiftLeft<kBits>(v);
}
template <int kBits>
HEADLIGHT_INLINE IntVec shift_right(IntVec v) {
  return hn::ShiftRight<kBits>(v);
}

}  // namespace headlight::HEADLIGHT_TARGET