// The gradients of attention(), block by block: the probabilities are worked out again and never kept.
#pragma once

#include <cstddef>

#include "headlight/attention.h"

namespace headlight {

// Where the gradients go; those left out are not computed. Any strides with a last one of 1.
struct AttentionGradients {
  View<float, 4> query{};  // [B, Lq, Hq, Dqk]
  View<float, 4> key{};    // [B, Lk, Hkv, Dqk]
  View<float, 4> value{};  // [B, Lk, Hkv, Dv]
  // The shape of options.bias: summed over the axes on which that is broadcast. The one gradient that may have Lq · Lk
  // entries.
  View<float, 4> bias{};
  View<float, 1> sinks{};  // [Hq]
  // Added to what is there; else overwritten.
  bool accumulate = false;
};

// The gradients of a sum whose gradient by `out` is out_gradient [B, Lq, Hq, Dv]. out [B, Lq, Hq, Dv] and log_sum_exp
// [B, Hq, Lq] are what attention() gave for the same query, key, value and options; the outputs that the options name
// are not written again. With P = exp(S − log_sum_exp), Z the dropout factors (1 without), δ_i = Σ_d dO_id · out_id:
//   dV = (P∘Z)ᵀ dO,  dP = (dO Vᵀ)∘Z,  dS = P∘(dP − δ) = d(bias),  dQ = scale · dS K,  dK = scale · dSᵀ Q,
//   d(sinks_h) = −Σ_i exp(sinks_h − log_sum_exp_i) δ_i;
// with a soft cap c, dQ and dK take dS∘(1 − (s / c)²) instead of dS, s the capped scores. Slopes are constants.
// A sum that depends on log_sum_exp too (partial results that are merged, a penalty on it) has δ_i − its gradient by
// log_sum_exp_i for δ_i: AttentionBackwardOperands::log_sum_exp_gradient of headlight/typed_attention_backward.h.
// Key and value gradients are summed over the query heads that share a head. Pairs that are not visible contribute
// nothing, NaN or not; padding has gradients of zero.
//
// gradients.query may be the same view as `out`, which is then lost; but for that no gradient may overlap anything
// (columns of one matrix do not).
// Time 10·B·Hq·(visible pairs)·D FLOP, and 4 more for a bias gradient; memory beyond the arguments 4 bytes a query row
// and head, and half a MiB for each thread at D = 64. The bits depend on the build and the instruction set alone,
// not on threads or on the batch beside. Throws as attention() does. Source: Dao et al. 2022, algorithm 4. Over numbers
// of 16 bits: headlight/typed_attention_backward.h.
HEADLIGHT_API void attention_backward(Engine& engine, View<const float, 4> query, View<const float, 4> key,
                                      View<const float, 4> value, View<const float, 4> out,
                                      View<const float, 3> log_sum_exp, View<const float, 4> out_gradient,
                                      const AttentionGradients& gradients, const AttentionOptions& options = {});

// Scratch bytes that attention_backward() of that shape takes from the engine, whatever the options; and taking them
// now, so that the first call allocates nothing.
[[nodiscard]] HEADLIGHT_API std::size_t backward_workspace_bytes(const Engine& engine, const AttentionShape& shape);
HEADLIGHT_API void reserve_backward(Engine& engine, const AttentionShape& shape);

}  // namespace headlight
