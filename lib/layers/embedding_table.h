// A weight matrix as a table of embeddings, in whichever format its rows lie.
#pragma once

#include <cstdint>
#include <span>

#include "headlight/layers/weight_matrix.h"
#include "headlight/normalization.h"

namespace headlight::layers {

inline Embedding embedding_of(const WeightMatrix& table, std::span<const std::int64_t> ids) noexcept {
  return {table.table(), ids, table.blocks()};
}

// Whether its rows are widened on their way, which takes scratch memory.
inline bool is_stored_table(const WeightMatrix& table) noexcept {
  return table.table().type != NumberType::float32 || table.blocks();
}

}  // namespace headlight::layers
