// Functions of one vector: exponentials, logarithm, tanh, and the activations built on them. Branch-free, for any
// number of lanes, in the caller's rounding mode (nearest is assumed), NaN for NaN throughout.
//
// ULP: distance to the true value in units of the spacing of floats at that value (2⁻¹⁴⁹ for subnormal ones). The
// bounds hold for every instruction set, with and without a fused multiply-add unless said; they were tried on all
// floats of the ranges where a function is neither linear nor constant (AVX-512 and scalar), and each has its row in
// tests/simd/math_test.cc. The polynomials are weighted minimax fits (relative error of the function, or as said), each
// coefficient rounded to float in turn, lowest first, with the rest fitted again.
#pragma once

#include "simd/several-inl.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// c[0] + c[1] x + … + c[N − 1] xᴺ⁻¹ by Horner's rule: the fewest operations, and kernels have several vectors in flight
// to hide the chain behind.
template <class V, int kCount>
HEADLIGHT_INLINE V polynomial(V x, const float (&c)[kCount]) {
  V sum = fma(broadcast(c[kCount - 1]), x, broadcast(c[kCount - 2]));
#pragma GCC unroll 16
  for (int i = kCount - 3; i >= 0; --i) sum = fma(sum, x, broadcast(c[i]));
  return sum;
}

inline constexpr float kLog2E = 0x1.715476p+0f;

// 2ˣ on [−½, ½], 1.06 ULP before rounding: weighted by ULP rather than relatively, for floats below 1 lie twice as
// close. 2⁰ = 1 exactly, so that the maximum of a softmax row has the weight 1. Degree 4 costs 41 ULP, degree 6 gains
// one.
inline constexpr float kExp2Coefficients[] = {1.0f,           0x1.62e424p-1f, 0x1.ebf9b4p-3f,
                                              0x1.c6bacep-5f, 0x1.3cecf6p-7f, 0x1.5a9f76p-10f};

// 2ˣ for −152 ≤ x, as exp2_nonpositive().
template <class V>
HEADLIGHT_INLINE V exp2_bounded(V x) {
  // The offset leaves n + 127 + 25 in the low bits: 2ⁿ⁺²⁵ is a float for −151 ≤ n ≤ 102. The factor 2⁻²⁵ is in the
  // coefficients, so the one product at the end rounds correctly into the subnormal numbers. (Adding to the exponent
  // instead would save nothing, end at 2⁻¹²⁶ and turn some NaN into numbers.) What is below −151.5 has a
  // factor of 0, whose product is exact, while one that underflows takes Intel's cores many times as long as a vector.
  constexpr float kOffset = kRoundingOffset + 127.0f + 25.0f;
  constexpr float kScaled[] = {0x1p-25f * kExp2Coefficients[0], 0x1p-25f * kExp2Coefficients[1],
                               0x1p-25f * kExp2Coefficients[2], 0x1p-25f * kExp2Coefficients[3],
                               0x1p-25f * kExp2Coefficients[4], 0x1p-25f * kExp2Coefficients[5]};
  const V shifted = add(x, broadcast(kOffset));
  const V fraction = sub(x, sub(shifted, broadcast(kOffset)));
  const V power = each([](Vec v) { return as_float(shift_left<23>(as_int(v))); }, shifted);
  return mul(polynomial(fraction, kScaled), power);
}

// 2ˣ for x ≤ 0, the weight of a softmax: at most 1.8 ULP (2.1 without kValues.has_fma), subnormal results included;
// exactly 1 for ±0; exactly +0 for x ≤ −150 and −∞. As rounding may leave an argument a little above 0, it is as good
// up to x = 64, and no further.
HEADLIGHT_INLINE Vec exp2_nonpositive(Vec x) {
  if constexpr (kValues.has_scalef) {
    // vreduceps instead of the clamp, the rounding and the difference is two instructions less, but slower with g++ 12;
    // so is shifting into the exponent, as above. Where the result is zero nothing is computed: finding an underflow
    // takes Intel's cores many times as long as a vector, and hidden keys, at −∞, are common.
    const auto nonzero = not_less_equal(x, broadcast(-150.0f));
    const Vec n = round(x);
    const Vec fraction = sub_where(nonzero, x, n);
    return scale_by_power_of_two_where(nonzero, polynomial(fraction, kExp2Coefficients), n);
  } else {
    return exp2_bounded(max(broadcast(-152.0f), x));
  }
}

// The same for −126 ≤ x, where no result is subnormal.
template <class V>
HEADLIGHT_INLINE V exp2_normal(V x) {
  if constexpr (kValues.has_scalef) {
    const V n = round(x);
    return scale_by_power_of_two(polynomial(sub(x, n), kExp2Coefficients), n);
  } else {
    return exp2_bounded(x);
  }
}

// Whether a maximum is so large, or no number, that rounding moves a distance from it by more than 16. Here and below
// by comparisons that no NaN traps.
HEADLIGHT_INLINE bool is_far_out(float maximum) { return !__builtin_islessequal(__builtin_fabsf(maximum), 0x1p28f); }

// Of a softmax with that maximum, and maxima of lanes: numbers of a lane up to this one have the weight 0.
HEADLIGHT_INLINE Vec vanishing_from(float maximum, Vec lanes) {
  // Twice the distance that it takes, from what is known before the maximum is.
  if (!is_far_out(maximum)) [[likely]]
    return sub(lanes, broadcast(208.0f));
  if (maximum == __builtin_inff()) return broadcast(__FLT_MAX__);
  // Farther than rounding moves a large maximum, and without an overflow.
  const double far = maximum - 0x1p-20 * __builtin_fabs(maximum);
  return broadcast(__builtin_isless(far, -__FLT_MAX__) ? -__builtin_inff() : static_cast<float>(far));
}

// The weight of x in a softmax, 2 to the power of distance · log₂ e, rounded; distance = x − maximum, rounded, and
// vanishing from vanishing_from(). What has vanished is 0 before it is multiplied, as the product of −FLT_MAX would
// overflow; that x says so, and not the distance, leaves a shorter chain of operations.
HEADLIGHT_INLINE Vec softmax_weight([[maybe_unused]] Vec x, Vec distance, [[maybe_unused]] Vec vanishing) {
  const Vec log2_e = broadcast(kLog2E);
  if constexpr (kValues.has_scalef) {
    const auto nonzero = not_less_equal(x, vanishing);
    const Vec scaled = mul_where(nonzero, distance, log2_e);
    const Vec n = round(scaled);
    return scale_by_power_of_two_where(nonzero, polynomial(sub(scaled, n), kExp2Coefficients), n);
  } else {
    return exp2_bounded(mul(max(broadcast(-0x1.a56666p+6f), distance), log2_e));  // −151.99
  }
}

// 2ˣ: at most 1.8 ULP for any x (2.1 without kValues.has_fma); +0 for x ≤ −150, +∞ from 128 on.
HEADLIGHT_INLINE Vec exp2(Vec x) {
  const Vec bounded = min(broadcast(129.0f), max(broadcast(-151.0f), x));
  const Vec n = round(bounded);
  return scale_by_power_of_two(polynomial(sub(bounded, n), kExp2Coefficients), n);
}

// eˣ: at most 1.2 ULP for any x; +0 below −103.98, +∞ above 88.72.
HEADLIGHT_INLINE Vec exp(Vec x) {
  // eʳ = 1 + r + r² (…) on |r| ≤ ½ ln 2, relative error 3.1e-9.
  constexpr float kCoefficients[] = {1.0f,           1.0f,           0x1.fffffcp-2f, 0x1.555492p-3f,
                                     0x1.5558b0p-5f, 0x1.12399cp-7f, 0x1.6a4eccp-10f};
  // ln 2 in two parts; the first has nine bits, so that its product with n is exact without a fused multiply-add.
  constexpr float kLn2High = 0x1.63p-1f;
  constexpr float kLn2Low = -0x1.bd0106p-13f;
  const Vec bounded = min(broadcast(90.0f), max(broadcast(-105.0f), x));
  const Vec n = round(mul(bounded, broadcast(kLog2E)));
  const Vec r = fnma(n, broadcast(kLn2Low), fnma(n, broadcast(kLn2High), bounded));
  return scale_by_power_of_two(polynomial(r, kCoefficients), n);
}

// ln(x · 2⁻ˢ) for a normal x > 0: at most 1 ULP.
HEADLIGHT_INLINE Vec log_normal(Vec x, Vec s) {
  // ln(1 + f) = f − f²/2 + f³ (…) on [√½ − 1, √2 − 1], relative error of the logarithm 5.8e-9.
  constexpr float kCoefficients[] = {0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a01cp-3f, -0x1.54728cp-3f,
                                     0x1.22d936p-3f, -0x1.0d8234p-3f, 0x1.055e64p-3f, -0x1.38c900p-4f};
  constexpr float kLn2High = 0x1.63p-1f;
  constexpr float kLn2Low = -0x1.bd0106p-13f;
  // x = 2ᵉ (1 + f): counting the bits from those of √½ lets the exponent change where f does.
  const IntVec root_half = broadcast_int(0x3f3504f3);
  const IntVec distance = sub_int(as_int(x), root_half);
  const IntVec exponent = shift_right<23>(distance);
  const Vec f = sub(as_float(sub_int(as_int(x), shift_left<23>(exponent))), broadcast(1.0f));
  // The exponent as a float, by way of the low bits of 1.5·2²³.
  const Vec offset = broadcast(kRoundingOffset);
  const Vec e = sub(sub(as_float(add_int(exponent, as_int(offset))), offset), s);
  const Vec tail = fma(f, polynomial(f, kCoefficients), broadcast(-0.5f));
  const Vec rest = fma(e, broadcast(kLn2Low), mul(mul(f, f), tail));
  return fma(e, broadcast(kLn2High), add(f, rest));
}

HEADLIGHT_INLINE Vec log_normal(Vec x) { return log_normal(x, zero()); }

// ln x: at most 1 ULP; −∞ for ±0, NaN for x < 0, subnormal arguments included.
HEADLIGHT_INLINE Vec log(Vec x) {
  const Mask subnormal = less(x, broadcast(0x1p-126f));
  const Vec normal = select(subnormal, mul(x, broadcast(0x1p25f)), x);
  const Vec finite = log_normal(normal, select(subnormal, broadcast(25.0f), zero()));
  const Vec infinity = broadcast(__builtin_inff());
  // +∞ and NaN give themselves; less() is false for NaN.
  const Vec positive = select(less(x, infinity), finite, x);
  return select(less(zero(), x), positive,
                select(equal(x, zero()), neg(infinity), select(less(x, zero()), broadcast(__builtin_nanf("")), x)));
}

// tanh a for a ≥ ½: at most 2.5 ULP.
HEADLIGHT_INLINE Vec tanh_from_half(Vec a) {
  // 1 − 2 t / (1 + t) with t = e⁻²ᵃ, which is less than 0.37.
  const Vec t = exp2_nonpositive(mul(a, broadcast(-2.0f * kLog2E)));
  const Vec one = broadcast(1.0f);
  return sub(one, div(add(t, t), add(one, t)));
}

// tanh x: at most 2.5 ULP for any x; odd, −0 for −0, ±1 from |x| = 9.02 on.
HEADLIGHT_INLINE Vec tanh(Vec x) {
  // tanh a = a + a³ (…) in a² for a < 0.625, relative error 4.5e-9.
  constexpr float kCoefficients[] = {-0x1.555532p-2f, 0x1.1106f6p-3f, -0x1.b835a4p-5f, 0x1.51f8cep-6f, -0x1.750ce4p-8f};
  const Vec a = min(broadcast(10.0f), abs(x));  // a square that overflows would be the only sign of it
  const Vec square = mul(a, a);
  const Vec small = fma(mul(a, square), polynomial(square, kCoefficients), a);
  return copysign(select(less(a, broadcast(0.625f)), small, tanh_from_half(a)), x);
}

// max(x, 0), −0 for −0.
template <class V>
HEADLIGHT_INLINE V relu(V x) {
  return each([](Vec v) { return max(zero(), v); }, x);
}

// |x| where that is less than `bound`, else 0, for NaN too.
template <class V>
HEADLIGHT_INLINE V abs_or_zero_from(V x, float bound) {
  return each(
      [bound](Vec v) {
        const Vec a = abs(v);
        return select(less(a, broadcast(bound)), a, zero());
      },
      x);
}

// log₂ Φ(−a), exact at 0; see gelu.
inline constexpr float kLog2UpperNormal[] = {-1.0f,
                                             -0x1.26aed2p+0f,
                                             -0x1.d63b6ep-2f,
                                             -0x1.ade61ep-5f,
                                             0x1.cb76fcp-8f,
                                             -0x1.f605b4p-15f,
                                             -0x1.0398d2p-12f,
                                             0x1.162f7ep-14f,
                                             -0x1.31b96cp-17f,
                                             0x1.6b513ap-21f,
                                             -0x1.705e16p-26f};

// x Φ(x) with Φ the normal distribution function: at most 2.7 ULP for x ≥ 0 and 5 ULP for −1 ≤ x < 0; a relative error
// of at most 5e-6 for −6 ≤ x < −1, an absolute one of 1e-10 below (the value at −6 is −5.9e-9); exactly +0 for
// x ≤ −11.4 and −∞.
template <class V>
HEADLIGHT_INLINE V gelu(V x) {
  // x Φ(x) = max(x, 0) − a Φ(−a), a = |x|: nothing cancels. The polynomial is log₂ Φ(−a), exact at 0, fitted on [0, 6]
  // so that the result is within 1.5e-8 of itself for x > 0 and 1.5e-6 for x < 0; it goes on falling to −122 at a =
  // 11.4. Beyond, a counts as 0: no power becomes subnormal, which takes Intel's cores many times as long as a vector.
  // Φ by a rational function and a division (Abramowitz & Stegun 7.1.26) is 7.6 ULP off and slower.
  const V a = abs_or_zero_from(x, 11.4f);
  return fnma(a, exp2_normal(polynomial(a, kLog2UpperNormal)), relu(x));
}

// Φ(x) + x φ(x), the derivative of gelu, within 3e-7 (its values lie between −0.13 and 1.13); NaN for NaN. With
// t = Φ(−a) − a φ(a), a = |x|, it is 1 − t for x ≥ 0 and t below. Φ(−a) as in gelu; where that would become subnormal t
// counts as at the bound, which is −3e-28.
HEADLIGHT_INLINE Vec gelu_derivative(Vec x) {
  constexpr float kRootOfTwoPi = 0x1.988454p-2f;  // 1 / √(2π)
  const Vec a = min(broadcast(11.4f), abs(x));
  const Vec upper = exp2_normal(polynomial(a, kLog2UpperNormal));
  const Vec density = exp2_normal(mul(mul(a, a), broadcast(-0.5f * kLog2E)));
  const Vec t = fnma(mul(a, broadcast(kRootOfTwoPi)), density, upper);
  return select(less(x, zero()), t, sub(broadcast(1.0f), t));
}

// x/2 (1 + tanh u), u = √(2/π) (x + 0.044715 x³): at most 2.5 ULP for x ≥ 0 and 5 ULP for −1 ≤ x < 0; a relative
// error of at most 5e-6 for −6 ≤ x < −1 and of 2e-5 below, down to 1e-36; exactly +0 for x ≤ −9.9 and −∞.
template <class V>
HEADLIGHT_INLINE V gelu_tanh(V x) {
  // = max(x, 0) − a t / (1 + t), a = |x|, t = e⁻²ᵘ⁽ᵃ⁾. A polynomial for log₂(t / (1 + t)), as in gelu, saves the
  // division but needs degree 9 and loses the relative error for x < 0.
  constexpr float kLinear = -0x1.26aec2p+1f;  // −2 √(2/π) log₂ e
  constexpr float kCubic = kLinear * 0.044715f;
  const V a = abs_or_zero_from(x, 9.9f);  // t = 2⁻¹²³: no subnormal numbers, as in gelu
  const V slope = fma(mul(a, a), broadcast(kCubic), broadcast(kLinear));
  const V t = exp2_normal(mul(a, slope));
  return fnma(a, div(t, add(broadcast(1.0f), t)), relu(x));
}

// The derivative of gelu_tanh, within 3e-7; NaN for NaN. With r = t / (1 + t) for a = |x| as there, it is 1 − d for
// x ≥ 0 and d below, d = r − a r (1 − r) · 2 √(2/π) (1 + 3 · 0.044715 a²).
HEADLIGHT_INLINE Vec gelu_tanh_derivative(Vec x) {
  constexpr float kLinear = -0x1.26aec2p+1f;
  constexpr float kCubic = kLinear * 0.044715f;
  constexpr float kSlope = 0x1.988454p+0f;  // 2 √(2/π)
  constexpr float kSlopeCubic = 3.0f * 0.044715f * kSlope;
  const Vec one = broadcast(1.0f);
  const Vec a = min(broadcast(9.9f), abs(x));
  const Vec square = mul(a, a);
  const Vec t = exp2_normal(mul(a, fma(square, broadcast(kCubic), broadcast(kLinear))));
  const Vec r = div(t, add(one, t));
  const Vec slope = mul(a, fma(square, broadcast(kSlopeCubic), broadcast(kSlope)));
  const Vec d = fnma(mul(r, sub(one, r)), slope, r);
  return select(less(x, zero()), d, sub(one, d));
}

// x σ(x) = x / (1 + e⁻ˣ): at most 2.5 ULP for x ≥ 0 and 3.5 ULP for −1 ≤ x < 0; a relative error of at most 2e-6 for
// −30 ≤ x < −1 and of 5e-6 below, down to 1.5e-36; exactly +0 for x ≤ −87 and −∞.
template <class V>
HEADLIGHT_INLINE V silu(V x) {
  // = max(x, 0) − a t / (1 + t), a = |x|, t = e⁻ᵃ: nothing cancels. No power becomes subnormal, as in gelu.
  const V a = abs_or_zero_from(x, 87.0f);
  const V t = exp2_normal(mul(a, broadcast(-kLog2E)));
  return fnma(a, div(t, add(broadcast(1.0f), t)), relu(x));
}

// The derivative of silu, within 3e-7; NaN for NaN. With r = t / (1 + t) = σ(−a) it is 1 − d for x ≥ 0 and d below, d =
// r − a r (1 − r).
HEADLIGHT_INLINE Vec silu_derivative(Vec x) {
  const Vec one = broadcast(1.0f);
  const Vec a = min(broadcast(87.0f), abs(x));
  const Vec t = exp2_normal(mul(neg(a), broadcast(kLog2E)));
  const Vec r = div(t, add(one, t));
  const Vec d = fnma(mul(r, sub(one, r)), a, r);
  return select(less(x, zero()), d, sub(one, d));
}

}  // namespace headlight::HEADLIGHT_TARGET
