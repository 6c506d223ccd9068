// The gradients of attention(), block by block: the probabilities are worked out again and never kept.
#pragma once

#include <cstddef>
#include <type_traits>

#include "headlight/attention.h"

namespace headlight {

// Where the gradients go; those left out are not computed. Any strides with a last one of 1. A Gradient is a
// View<float, 4>, or where one of them is of 16 bits a MutableTypedView<4>: those of query, key and value may be of
// float32, bfloat16 or float16, whatever the operands are.
template <class Gradient>
struct GradientsOfAttention {
  Gradient query{};  // [B, Lq, Hq, Dqk]
  Gradient key{};    // [B, Lk, Hkv, Dqk]
  Gradient value{};  // [B, Lk, Hkv, Dv]
  // The shape of options.bias: summed over the axes on which that is broadcast. The one gradient that may have Lq · Lk
  // entries.
  View<float, 4> bias{};
  View<float, 1> sinks{};  // [Hq]
  // Added to what is there; else overwritten.
  bool accumulate = false;

  // Those of float32 go where any may.
  operator GradientsOfAttention<MutableTypedView<4>>() const noexcept  // NOLINT(runtime/explicit)
      requires std::is_same_v<Gradient, View<float, 4>> {
    return {query, key, value, bias, sinks, accumulate};
  }
};
using AttentionGradients = GradientsOfAttention<View<float, 4>>;
using TypedAttentionGradients = GradientsOfAttention<MutableTypedView<4>>;

// The gradients of a sum whose gradient by `out` is out_gradient [B, Lq, Hq, Dv]. out [B, Lq, Hq, Dv] and log_sum_exp
// [B, Hq, Lq] are what attention() gave for the same query, key, value and options; the outputs that the options name
// are not written again. Each but log_sum_exp is of a type of its own: float32, bfloat16 or float16. With P = exp(S −
// log_sum_exp), Z the dropout factors (1 without), δ_i = Σ_d dO_id · out_id:
//   dV = (P∘Z)ᵀ dO,  dP = (dO Vᵀ)∘Z,  dS = P∘(dP − δ) = d(bias),  dQ = scale · dS K,  dK = scale · dSᵀ Q,
//   d(sinks_h) = −Σ_i exp(sinks_h − log_sum_exp_i) δ_i;
// with a soft cap c, dQ and dK take dS∘(1 − (s / c)²) instead of dS, s the capped scores. Slopes are constants.
// A sum that depends on log_sum_exp too (partial results that are merged, a penalty on it) has δ_i −
// options.log_sum_exp_gradient_i for δ_i, since log_sum_exp_i changes by P_ij with S_ij; of a row whose log_sum_exp is
// −inf it counts for nothing. Key and value gradients are summed over the query heads that share a head. Pairs that are
// not visible contribute nothing, NaN or not; padding has gradients of zero.
//
// gradients.query may be the same view as `out`, of the same type, which is then lost; but for that no gradient may
// overlap anything (columns of one matrix do not).
// Time 10·B·Hq·(visible pairs)·D FLOP, and 4 more for a bias gradient; memory beyond the arguments 12 bytes a query row
// and head, and half a MiB for each thread at D = 64; where the query gradient is of 16 bits its sums are scratch
// memory too, 4 · B · Lq · Hq · Dqk bytes (Dqk rounded up to whole vectors). The bits depend on the build and the
// instruction set with its features alone, not on threads or on the batch beside. Throws as attention() does. Source:
// Dao et al. 2022, algorithm 4.
//
// Unless pairs are multiplied, as below, numbers of 16 bits are storage: operands are widened, which is exact, all
// arithmetic and all sums are float32's, and each element of a gradient of 16 bits is rounded once, to the nearest
// number of its type, ties to even, when its sum is whole; with `accumulate` what is there is widened and is a term of
// that sum, the first of the query gradient's, the last of the others'. So gradients have the bits of the same call
// over the widened operands, rounded. δ is that of `out` as it is stored: with its numbers rounded to bfloat16
// (float16), δ_i errs by up to 2⁻⁸ (2⁻¹¹) · Σ_d |dO_id · out_id|, and dS_ij by P_ij times that.
//
// Where query, key, value and out_gradient are all bfloat16, Dqk and Dv are even and engine.features() holds
// avx512_bf16 or amx_bf16, products are taken of bfloat16 numbers, many at a time. They are exact, and sums are
// float32's:
//   query · key and out_gradient · value are the sums over pairs (d, d + 1) that attention.h tells of;
//   weights P∘Z and score gradients dS are worked out of these in float32, and then rounded to bfloat16;
//   dV = (P∘Z)ᵀ dO and dK = scale · dSᵀ Q are sums over pairs of rows, dQ = scale · dS K is one over pairs of keys, in
//   blocks as float32's are. A pair is (n, n + 1), n even in the sequence, and its second number is taken first;
//   with amx_bf16 the first and the second numbers of the pairs in each 32 are summed apart and then together, and so
//   added to what is there: dV and dK to those of all rows before, dQ to those of the keys before in its block.
// Numbers and sums below 2⁻¹²⁶ count as 0 in these products; so an infinite number times a weight or score gradient
// that small is NaN, where float32 has infinity. Else gradients err by that rounding more than float32's: dV by at most
// 2⁻⁸ · Σ_i P_ij Z_ij |dO_i|, dK by 2⁻⁸ · |scale| · Σ_i |dS_ij Q_i| and dQ by 2⁻⁸ · |scale| · Σ_j |dS_ij K_j|; those of
// bias and sinks by as little as float32's. Without either in engine.features() the bits are float32's, and so is the
// speed.
//
// One function in two forms, as attention() is.
HEADLIGHT_API void attention_backward(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                      View<const float, 4> value, View<const float, 4> out,
                                      View<const float, 3> log_sum_exp, View<const float, 4> out_gradient,
                                      const AttentionGradients& gradients, const AttentionOptions& options = {});
HEADLIGHT_API void attention_backward_of_types(Engine& engine, const TypedView<4>& query, const TypedView<4>& key,
                                               const TypedView<4>& value, const TypedView<4>& out,
                                               View<const float, 3> log_sum_exp, const TypedView<4>& out_gradient,
                                               const TypedAttentionGradients& gradients,
                                               const AttentionOptions& options);
template <int = 0>
void attention_backward(Engine& engine, const TypedView<4>& query, const TypedView<4>& key, const TypedView<4>& value,
                        const TypedView<4>& out, View<const float, 3> log_sum_exp, const TypedView<4>& out_gradient,
                        const TypedAttentionGradients& gradients, const AttentionOptions& options = {}) {
  attention_backward_of_types(engine, query, key, value, out, log_sum_exp, out_gradient, gradients, options);
}

// Scratch bytes that attention_backward() of that shape, whose query gradient is of that type, takes from the engine,
// whatever the options and the other types; and taking them now, so that the first call allocates nothing.
[[nodiscard]] HEADLIGHT_API std::size_t backward_workspace_bytes(const Engine& engine, const AttentionShape& shape,
                                                                 NumberType query_gradient = NumberType::float32);
HEADLIGHT_API void reserve_backward(Engine& engine, const AttentionShape& shape,
                                    NumberType query_gradient = NumberType::float32);

}  // namespace headlight
