// Plain twin of the lengths of heads' parts.
#pragma once

#include <cmath>

#include "headlight/tensor.h"

namespace headlight::reference {

// norms(n, h) = ‖Σ_d outputs(n, h·D + d) · weight(·, h·D + d)‖; outputs [N, H·D], weight [E, H·D], norms [N, H].
// weight [E, D]: the same columns for every head.
template <class Scalar>
void head_part_norms(View<const Scalar, 2> outputs, View<const Scalar, 2> weight, View<Scalar, 2> norms) {
  const std::int64_t head_dim = outputs.extent(1) / norms.extent(1);
  for (std::int64_t n = 0; n < norms.extent(0); ++n) {
    for (std::int64_t head = 0; head < norms.extent(1); ++head) {
      Scalar squares = 0;
      for (std::int64_t e = 0; e < weight.extent(0); ++e) {
        Scalar part = 0;
        for (std::int64_t d = 0; d < head_dim; ++d)
          part += outputs(n, head * head_dim + d) * weight(e, (head * head_dim + d) % weight.extent(1));
        squares += part * part;
      }
      norms(n, head) = std::sqrt(squares);
    }
  }
}

}  // namespace headlight::reference
