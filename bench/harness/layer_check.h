// The check of layers: the first sequence of a batch against the float64 twin.
#pragma once

#include <functional>
#include <string>

#include "headlight/tensor.h"

namespace headlight::bench {

// x, y [B, L, E]. `twin` maps [1, L, E] to [1, L, E] in float64; it takes seconds for the larger layers, so its answer
// is kept under `name`, which stands for the same weights and inputs all through the process.
[[nodiscard]] bool first_sequence_is_right(const std::string& name, const Tensor<float, 3>& x,
                                           const Tensor<float, 3>& y,
                                           const std::function<Tensor<double, 3>(Tensor<double, 3>& x)>& twin);

}  // namespace headlight::bench
