// Which layers of a stack are computed again together.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "headlight/layers/training.h"

namespace headlight::layers {

inline bool keeps_linear(Checkpoint checkpoint) noexcept { return checkpoint == Checkpoint::keep_linear; }

// How many layers are computed again at a time; 0: none, all is kept.
inline std::int64_t segment_length(Checkpoint checkpoint, std::int64_t k, std::int64_t layers) noexcept {
  if (keeps_linear(checkpoint) || layers == 0) return 0;
  if (checkpoint == Checkpoint::layer_input) return 1;
  const auto root = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(layers))));
  return std::clamp<std::int64_t>(k == 0 ? root : k, 1, layers);
}

}  // namespace headlight::layers
