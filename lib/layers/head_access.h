// What may be asked of the heads of a layer.
#pragma once

#include <cstdint>
#include <string_view>

#include "headlight/layers/multi_head_attention.h"
#include "layers/layer_names.h"
#include "ops/check.h"

namespace headlight::layers {

// Throws unless the heads to silence are among so many, and what is written has the shape of x [B, L, E].
inline void check_head_access(const HeadAccess& access, std::int64_t heads, const View<const float, 3>& x) {
  for (const std::int64_t head : access.silenced) {
    if (head >= 0 && head < heads) continue;
    ops::fail(kMultiHeadAttentionName, "head ", head, " is to be silenced, expected 0 to ", heads - 1);
  }
  const auto check_shape = [&](std::string_view name, const View<float, 3>& of_heads) {
    if (of_heads) ops::check_shape(kMultiHeadAttentionName, name, of_heads.shape, x.shape, "[B, Lq, E]");
  };
  check_shape("heads.outputs", access.outputs);
  check_shape("heads.scaled_outputs", access.scaled_outputs);
}

}  // namespace headlight::layers
