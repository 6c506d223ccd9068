// The gradients of attention over memory of 16 bits a number.
#pragma once

#include <cstddef>

#include "headlight/attention_backward.h"
#include "headlight/typed_view.h"

namespace headlight {

// As attention_backward() takes them, each but log_sum_exp of a type of its own: float32, bfloat16 or float16.
struct AttentionBackwardOperands {
  TypedView<4> query;                // [B, Lq, Hq, Dqk]
  TypedView<4> key;                  // [B, Lk, Hkv, Dqk]
  TypedView<4> value;                // [B, Lk, Hkv, Dv]
  TypedView<4> out;                  // [B, Lq, Hq, Dv]
  View<const float, 3> log_sum_exp;  // [B, Hq, Lq]
  TypedView<4> out_gradient;         // [B, Lq, Hq, Dv]
  // [B, Hq, Lq]: where the sum depends on log_sum_exp too, its gradient by that, which is taken from δ, since
  // log_sum_exp_i changes by P_ij with S_ij. Of a row whose log_sum_exp is −inf it counts for nothing.
  View<const float, 3> log_sum_exp_gradient = {};
};

// Where the gradients go; those left out are not computed. Types are those above, whatever the operands' are.
struct TypedAttentionGradients {
  MutableTypedView<4> query{};  // [B, Lq, Hq, Dqk]
  MutableTypedView<4> key{};    // [B, Lk, Hkv, Dqk]
  MutableTypedView<4> value{};  // [B, Lk, Hkv, Dv]
  View<float, 4> bias{};        // the shape of options.bias
  View<float, 1> sinks{};       // [Hq]
  // Added to what is there; else overwritten.
  bool accumulate = false;
};

// attention_backward() with every option, and all that it promises. Unless pairs are multiplied, as below, numbers of
// 16 bits are storage: operands are widened, which is exact, all arithmetic and all sums are float32's, and each
// element of a gradient of 16 bits is rounded once, to the nearest number of its type, ties to even, when its sum is
// whole; with `accumulate` what is there is widened and is a term of that sum, the first of the query gradient's, the
// last of the others'. So gradients have the bits of attention_backward() over the widened operands, rounded. δ is that
// of `out` as it is stored: with its numbers rounded to bfloat16 (float16), δ_i errs by up to 2⁻⁸ (2⁻¹¹) · Σ_d |dO_id ·
// out_id|, and dS_ij by P_ij times that.
//
// gradients.query may be the same view as `out`, of the same type. Where it is of 16 bits its sums are scratch memory:
// 4 · B · Lq · Hq · Dqk bytes (Dqk rounded up to whole vectors) beyond those of attention_backward().
//
// Where query, key, value and out_gradient are all bfloat16, Dqk and Dv are even and engine.features() holds
// avx512_bf16, products are taken of bfloat16 numbers, twice as many at a time. They are exact, and sums are float32's:
//   query · key and out_gradient · value are the sums over pairs (d, d + 1) that typed_attention.h tells of;
//   weights P∘Z and score gradients dS are worked out of these in float32, and then rounded to bfloat16;
//   dV = (P∘Z)ᵀ dO and dK = scale · dSᵀ Q are sums over pairs of rows, dQ = scale · dS K is one over pairs of keys, in
//   blocks as float32's are. A pair is (n, n + 1), n even in the sequence, and its second number is taken first.
// Numbers and sums below 2⁻¹²⁶ count as 0 in these products; so an infinite number times a weight or score gradient
// that small is NaN, where float32 has infinity. Else gradients err by that rounding more than float32's: dV by at most
// 2⁻⁸ · Σ_i P_ij Z_ij |dO_i|, dK by 2⁻⁸ · |scale| · Σ_i |dS_ij Q_i| and dQ by 2⁻⁸ · |scale| · Σ_j |dS_ij K_j|; those of
// bias and sinks by as little as float32's. The bits depend on the call, the instruction set and its features alone,
// not on threads or on the batch beside. Without avx512_bf16 in `EngineOptions::features` they are float32's, and so is
// the speed.
HEADLIGHT_API void attention_backward(Engine& engine, const AttentionBackwardOperands& operands,
                                      const TypedAttentionGradients& gradients, const AttentionOptions& options = {});

// Scratch bytes of such a call of that shape, whatever the options and the other types, and taking them now.
[[nodiscard]] HEADLIGHT_API std::size_t backward_workspace_bytes(const Engine& engine, const AttentionShape& shape,
                                                                 NumberType query_gradient);
HEADLIGHT_API void reserve_backward(Engine& engine, const AttentionShape& shape, NumberType query_gradient);

}  // namespace headlight
