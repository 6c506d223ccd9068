// The gradient of the additive mask.
#pragma once

#include "headlight/engine.h"
#include "ops/attention_backward/block.h"

namespace headlight::ops {

// d(bias) = dS summed over the axes on which the bias is broadcast, in a pass of its own: each unit owns some entries
// and works out all score gradients that go into them, in ascending order.
void differentiate_bias(Engine& engine, const BackwardCall& call) noexcept;

// The gradient of a bias that tells distances alone, bias(b, h, i, j) = table(h, j − i + Lq − 1): dS summed over
// samples and all pairs of a distance, to call.sums.distances. A unit is a head of one sum. Whatever the tiles, pairs
// of a distance are added in ascending order of rows.
void differentiate_distances(Engine& engine, const BackwardCall& call) noexcept;
// Adds the score gradients of a tile to such sums, of which number `first` is that of its first row and its first key.
void add_to_distances(const kernels::BackwardTile& tile, std::int64_t first, float* sums) noexcept;

}  // namespace headlight::ops
