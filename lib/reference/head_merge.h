// Plain twin of the ways to put heads together.
#pragma once

#include <cmath>

#include "headlight/layers/multi_head_attention.h"
#include "headlight/tensor.h"
#include "reference/linear.h"

namespace headlight::reference {

// What a merge has beside W_O or W_up; what it lacks is not given.
template <class Scalar>
struct HeadMerge {
  Merge merge = Merge::concatenate;
  View<const Scalar, 1> logits{};      // [H]
  View<const Scalar, 2> projection{};  // [H, E] or [E, E]
};

// The weight of head h for the row x_n: softmax over heads of a, or of x W_aᵀ, or 1/H.
template <class Scalar>
Tensor<Scalar, 2> head_weights(const HeadMerge<Scalar>& merge, View<const Scalar, 2> x, std::int64_t heads) {
  Tensor<Scalar, 2> weights({x.extent(0), heads});
  if (merge.merge == Merge::weighted_by_input) linear<Scalar>(x, merge.projection, {}, weights);
  for (std::int64_t n = 0; n < x.extent(0); ++n) {
    Scalar largest = -INFINITY;
    for (std::int64_t head = 0; head < heads; ++head) {
      if (merge.merge == Merge::weighted) weights(n, head) = merge.logits(head);
      largest = std::fmax(largest, weights(n, head));
    }
    Scalar sum = 0;
    for (std::int64_t head = 0; head < heads; ++head) sum += weights(n, head) = std::exp(weights(n, head) - largest);
    for (std::int64_t head = 0; head < heads; ++head) weights(n, head) /= sum;
  }
  return weights;
}

// x [N, E] the queries, heads [N, H · D] → [N, E] or [N, D]: what the last product takes.
template <class Scalar>
Tensor<Scalar, 2> merged_heads(const HeadMerge<Scalar>& merge, View<const Scalar, 2> x, View<const Scalar, 2> heads,
                               std::int64_t count) {
  const std::int64_t rows = heads.extent(0);
  const std::int64_t width = heads.extent(1);
  const std::int64_t head_dim = width / count;
  const bool gated = merge.merge == Merge::gated_by_head || merge.merge == Merge::gated_by_element;
  if (merge.merge != Merge::concatenate && !gated) {
    const Tensor<Scalar, 2> weights = head_weights(merge, x, count);
    Tensor<Scalar, 2> mean({rows, head_dim});
    for (std::int64_t n = 0; n < rows; ++n) {
      for (std::int64_t e = 0; e < width; ++e) mean(n, e % head_dim) += weights(n, e / head_dim) * heads(n, e);
    }
    return mean;
  }
  Tensor<Scalar, 2> all({rows, width});
  Tensor<Scalar, 2> gates({rows, gated ? merge.projection.extent(0) : 1});
  if (gated) linear<Scalar>(x, merge.projection, {}, gates);
  for (std::int64_t n = 0; n < rows; ++n) {
    for (std::int64_t e = 0; e < width; ++e) {
      const Scalar gate = gated ? gates(n, merge.merge == Merge::gated_by_head ? e / head_dim : e) : Scalar(0);
      all(n, e) = gated ? heads(n, e) / (1 + std::exp(-gate)) : heads(n, e);
    }
  }
  return all;
}

}  // namespace headlight::reference
