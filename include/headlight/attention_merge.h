// Attention over some of the keys at a time, put together: what keys that lie on several machines, or in several
// places, need.
#pragma once

#include <span>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/tensor.h"

namespace headlight {

// What attention() gave over some of the keys: its result and its log-sum-exp.
struct AttentionPart {
  View<const float, 4> out;          // [B, Lq, Hq, Dv]
  View<const float, 3> log_sum_exp;  // [B, Hq, Lq]
};

// Attention over the keys of all parts, which share none:
//   log_sum_exp = log Σ_p exp(log_sum_exp_p),  out = Σ_p exp(log_sum_exp_p − log_sum_exp) · out_p,
// both sums in the order of the parts, of which there is at least one; all have the shape of out. A sink belongs to one
// of them alone. Where a log-sum-exp is −inf the part's row is not read; where all are, the row is zeros. out and
// log_sum_exp [B, Hq, Lq], which need not be given, may be those of a part, and may overlap nothing else. Any strides
// with a last one of 1.
// Time 2·parts·B·Lq·Hq·Dv FLOP. The bits depend on the build, the instruction set and the row's own inputs alone.
// Throws std::invalid_argument naming the argument, what it was and what was expected; OutOfMemory, before anything is
// written, when some bytes for each part cannot be had.
HEADLIGHT_API void merge_attention(Engine& engine, std::span<const AttentionPart> parts, View<float, 4> out,
                                   View<float, 3> log_sum_exp = {});

}  // namespace headlight
