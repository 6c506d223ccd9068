// The operands of a call of attention_backward(), whatever their types.
#pragma once

#include "headlight/attention_backward.h"

namespace headlight::ops {

struct AttentionBackwardOperands {
  TypedView<4> query;                // [B, Lq, Hq, Dqk]
  TypedView<4> key;                  // [B, Lk, Hkv, Dqk]
  TypedView<4> value;                // [B, Lk, Hkv, Dv]
  TypedView<4> out;                  // [B, Lq, Hq, Dv]
  View<const float, 3> log_sum_exp;  // [B, Hq, Lq]
  TypedView<4> out_gradient;         // [B, Lq, Hq, Dv]
  // The options'.
  View<const float, 3> log_sum_exp_gradient = {};
};

}  // namespace headlight::ops
