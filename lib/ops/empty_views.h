// Views without elements. Nothing of them is read or written, but where their rows would lie is worked out: they may
// have no memory, and any strides, whose multiples need not be numbers.
#pragma once

#include "headlight/tensor.h"
#include "ops/attention/check.h"

namespace headlight::ops {

// Whether a call of those sizes has such. (Without rows or samples, nobody asks for one.)
[[nodiscard]] inline bool has_empty_views(const AttentionSizes& sizes) noexcept {
  return sizes.head_dim == 0 || sizes.value_dim == 0 || sizes.key_length == 0;
}

// Lays what there is of those among the views that have no elements at one address.
template <class... Views>
void lay_empty_views(float& anywhere, Views&... views) noexcept {
  const auto lay = [&](auto& view) {
    if (view.size() != 0) return;
    view.data = &anywhere;
    view.strides = {};
  };
  (lay(views), ...);
}

}  // namespace headlight::ops
