// The vocabulary over xsimd (8.1 and later). Where xsimd computes something else than the vocabulary promises, the
// compiler's intrinsics stand in; each such place says what xsimd 8.1 does.
#pragma once

#include <cstdint>
#include <type_traits>
#include <xsimd/xsimd.hpp>

#include "simd/target-inl.h"

namespace headlight::HEADLIGHT_TARGET {

using Vec = xsimd::batch<float>;
using IntVec = xsimd::batch<std::int32_t>;
using Mask = xsimd::batch_bool<float>;

inline constexpr int kLanes = static_cast<int>(Vec::size);

HEADLIGHT_INLINE auto to_native(Vec v) { return static_cast<Vec::register_type>(v); }
HEADLIGHT_INLINE auto to_native_int(IntVec v) { return static_cast<IntVec::register_type>(v); }
HEADLIGHT_INLINE Vec from_native(Vec::register_type v) { return Vec(v); }
HEADLIGHT_INLINE IntVec from_native_int(IntVec::register_type v) { return IntVec(v); }

template <typename Native>
HEADLIGHT_INLINE Mask from_native_mask(Native bits) {
  return Mask(bits);
}

HEADLIGHT_INLINE Vec zero() { return Vec(0.0f); }
HEADLIGHT_INLINE Vec broadcast(float value) { return Vec(value); }
HEADLIGHT_INLINE Vec lane_index() { return Vec::load_aligned(kLaneIndices); }
HEADLIGHT_INLINE Vec load(const float* from) { return Vec::load_unaligned(from); }
HEADLIGHT_INLINE void store(Vec v, float* to) { v.store_unaligned(to); }

HEADLIGHT_INLINE IntVec broadcast_int(std::int32_t value) { return IntVec(value); }
#if defined(__aarch64__)
// On NEON xsimd looks its cast up in a table of functions, which g++ calls where a tile has many.
HEADLIGHT_INLINE IntVec as_int(Vec v) { return IntVec(vreinterpretq_s32_f32(to_native(v))); }
HEADLIGHT_INLINE Vec as_float(IntVec v) { return Vec(vreinterpretq_f32_s32(to_native_int(v))); }
#else
// bitwise_cast names the type that a lane becomes (version 13, of Debian 13) or that the vector does (8, of Debian 12).
template <class To, class From>
HEADLIGHT_INLINE To with_bits_of(From v) {
  using Lane = typename To::value_type;
  if constexpr (std::is_same_v<decltype(xsimd::bitwise_cast<Lane>(v)), To>) {
    return xsimd::bitwise_cast<Lane>(v);
  } else {
    return xsimd::bitwise_cast<To>(v);
  }
}
HEADLIGHT_INLINE IntVec as_int(Vec v) { return with_bits_of<IntVec>(v); }
HEADLIGHT_INLINE Vec as_float(IntVec v) { return with_bits_of<Vec>(v); }
#endif
HEADLIGHT_INLINE IntVec add_int(IntVec a, IntVec b) { return a + b; }
HEADLIGHT_INLINE IntVec sub_int(IntVec a, IntVec b) { return a - b; }
HEADLIGHT_INLINE IntVec mul_int(IntVec a, IntVec b) { return a * b; }
HEADLIGHT_INLINE Vec to_float(IntVec v) { return xsimd::to_float(v); }
HEADLIGHT_INLINE IntVec and_int(IntVec a, IntVec b) { return a & b; }
template <int kBits>
HEADLIGHT_INLINE IntVec shift_left(IntVec v) {
  return v << kBits;
}
template <int kBits>
HEADLIGHT_INLINE IntVec shift_right(IntVec v) {
  return v >> kBits;
}

HEADLIGHT_INLINE Vec add(Vec a, Vec b) { return a + b; }
HEADLIGHT_INLINE Vec sub(Vec a, Vec b) { return a - b; }
HEADLIGHT_INLINE Vec mul(Vec a, Vec b) { return a * b; }

HEADLIGHT_INLINE Mask less(Vec a, Vec b) { return a < b; }
HEADLIGHT_INLINE Mask less_equal(Vec a, Vec b) { return a <= b; }
HEADLIGHT_INLINE Mask equal(Vec a, Vec b) { return a == b; }
// Not a != a: xsimd's is false for NaN on AVX.
HEADLIGHT_INLINE Mask is_nan(Vec a) { return !(a == a); }
HEADLIGHT_INLINE Mask mask_first(int count) { return lane_index() < Vec(static_cast<float>(count)); }
HEADLIGHT_INLINE Mask mask_and(Mask a, Mask b) { return a & b; }
HEADLIGHT_INLINE Mask mask_or(Mask a, Mask b) { return a | b; }
HEADLIGHT_INLINE Mask mask_not(Mask a) { return !a; }
HEADLIGHT_INLINE bool any_of(Mask a) { return xsimd::any(a); }
HEADLIGHT_INLINE Vec select(Mask mask, Vec yes, Vec no) { return xsimd::select(mask, yes, no); }

// Signs by their bit: xsimd negates by 0 − v on AVX-512, which loses −0.
HEADLIGHT_INLINE Vec abs(Vec a) { return as_float(as_int(a) & IntVec(INT32_MAX)); }
HEADLIGHT_INLINE Vec neg(Vec a) { return as_float(as_int(a) ^ IntVec(INT32_MIN)); }
HEADLIGHT_INLINE Vec copysign(Vec magnitude, Vec sign) {
  return as_float((as_int(magnitude) & IntVec(INT32_MAX)) | (as_int(sign) & IntVec(INT32_MIN)));
}

#if defined(__aarch64__)
// xsimd estimates these on NEON, and its maximum is NaN where the x86 rule gives b.
HEADLIGHT_INLINE Vec div(Vec a, Vec b) { return Vec(vdivq_f32(to_native(a), to_native(b))); }
HEADLIGHT_INLINE Vec sqrt(Vec a) { return Vec(vsqrtq_f32(to_native(a))); }
HEADLIGHT_INLINE Vec round(Vec a) { return Vec(vrndnq_f32(to_native(a))); }
HEADLIGHT_INLINE Vec fma(Vec a, Vec b, Vec c) { return Vec(vfmaq_f32(to_native(c), to_native(a), to_native(b))); }
HEADLIGHT_INLINE Vec fnma(Vec a, Vec b, Vec c) { return Vec(vfmsq_f32(to_native(c), to_native(a), to_native(b))); }
HEADLIGHT_INLINE Vec max(Vec a, Vec b) { return select(less(b, a), a, b); }
HEADLIGHT_INLINE Vec min(Vec a, Vec b) { return select(less(a, b), a, b); }
#else
HEADLIGHT_INLINE Vec div(Vec a, Vec b) { return a / b; }
HEADLIGHT_INLINE Vec sqrt(Vec a) { return xsimd::sqrt(a); }
HEADLIGHT_INLINE Vec round(Vec a) { return xsimd::nearbyint(a); }
HEADLIGHT_INLINE Vec max(Vec a, Vec b) { return xsimd::max(a, b); }
HEADLIGHT_INLINE Vec min(Vec a, Vec b) { return xsimd::min(a, b); }
#if defined(__AVX512F__)
// xsimd multiplies and adds here, with two roundings.
HEADLIGHT_INLINE Vec fma(Vec a, Vec b, Vec c) { return Vec(_mm512_fmadd_ps(to_native(a), to_native(b), to_native(c))); }
HEADLIGHT_INLINE Vec fnma(Vec a, Vec b, Vec c) {
  return Vec(_mm512_fnmadd_ps(to_native(a), to_native(b), to_native(c)));
}
#elif defined(__FMA__)
HEADLIGHT_INLINE Vec fma(Vec a, Vec b, Vec c) { return xsimd::fma(a, b, c); }
HEADLIGHT_INLINE Vec fnma(Vec a, Vec b, Vec c) { return xsimd::fnma(a, b, c); }
#else
HEADLIGHT_INLINE Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }
HEADLIGHT_INLINE Vec fnma(Vec a, Vec b, Vec c) { return c - a * b; }
#endif
#endif

}  // namespace headlight::HEADLIGHT_TARGET