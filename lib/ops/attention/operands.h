// The operands of a call of attention, whatever their types.
#pragma once

#include "headlight/attention.h"

namespace headlight::ops {

struct AttentionOperands {
  TypedView<4> query;       // [B, Lq, Hq, Dqk]
  TypedView<4> key;         // [B, Lk, Hkv, Dqk]
  TypedView<4> value;       // [B, Lk, Hkv, Dv]
  MutableTypedView<4> out;  // [B, Lq, Hq, Dv]
  // The options', of rows of int8.
  View<const float, 3> key_scales = {};
  View<const float, 3> value_scales = {};
};

}  // namespace headlight::ops
