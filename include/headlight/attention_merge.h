// Attention over some of the keys at a time, put together: what keys that lie on several machines, or in several
// places, need.
#pragma once

#include <span>

#include "headlight/engine.h"
#include "headlight/export.h"
#include "headlight/tensor.h"
#include "headlight/typed_view.h"

namespace headlight {

// What attention() gave over some of the keys: its result, of float32, bfloat16 or float16, and its log-sum-exp.
struct AttentionPart {
  TypedView<4> out;                  // [B, Lq, Hq, Dv]
  View<const float, 3> log_sum_exp;  // [B, Hq, Lq]
};

// Attention over the keys of all parts, which share none:
//   log_sum_exp = log Σ_p exp(log_sum_exp_p),  out = Σ_p exp(log_sum_exp_p − log_sum_exp) · out_p,
// both sums in the order of the parts, of which there is at least one; all have the shape of out. A sink belongs to one
// of them alone. Where a log-sum-exp is −inf the part's row is not read; where all are, the row is zeros. out and
// log_sum_exp [B, Hq, Lq], which need not be given, may be those of a part, and may overlap nothing else. Any strides
// with a last one of 1. Each part and out are of a type of their own: numbers of 16 bits are widened, which is exact,
// all arithmetic is float32's, and out is rounded once, to the nearest number of its type, ties to even. Time
// 2·parts·B·Lq·Hq·Dv FLOP. The bits depend on the build, the instruction set and the row's own inputs alone. Throws
// std::invalid_argument naming the argument, what it was and what was expected; OutOfMemory, before anything is
// written, when some bytes for each part, and with parts of 16 bits a row of floats, cannot be had.
HEADLIGHT_API void merge_attention(Engine& engine, std::span<const AttentionPart> parts, const MutableTypedView<4>& out,
                                   View<float, 3> log_sum_exp = {});

}  // namespace headlight
