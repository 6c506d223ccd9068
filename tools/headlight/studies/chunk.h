// headlight study chunk: what attention inside chunks saves, and what it no longer sees.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/engine.h"
#include "headlight/tensor.h"

namespace headlight::program {

// Queries, keys and values of one attention layer: [1, L, H, D] each.
struct ChunkInputs {
  Tensor<float, 4> query, key, value;
};

struct ChunkSource {
  std::string words;  // where they come from, for the table
  std::vector<ChunkInputs> layers;
};

// Of a BERT model's layers, over the words of a file, or a text about a lighthouse where none is given; as many
// tokens as the model takes.
[[nodiscard]] ChunkSource inputs_of_model(Engine& engine, const std::string& model, const std::string& file);
// Normal numbers: queries and keys of neighbours point the same way, which fades over some hundred positions.
[[nodiscard]] ChunkSource seeded_inputs(std::int64_t length, std::int64_t heads, std::int64_t head_dim,
                                        std::uint64_t seed);

// One length of chunks; means over all layers, heads and rows.
struct ChunkRow {
  std::int64_t chunk = 0;
  double outside = 0;  // attention mass that full attention gives to keys outside the row's chunk
  double error = 0;    // |out − full| / |full|, over a layer
  double pairs = 0;    // query-key pairs that are computed, of all
  double forward = 0;  // seconds, all layers
  double backward = 0;
  // What a layer's pass forward and backward holds, by the ledger: recomputing its weights, or writing them out, chunk
  // by chunk.
  double recomputing_bytes = 0;
  double unfused_bytes = 0;
  bool busy = false;  // runs of one of the times disagree
};

// The last row is full attention.
[[nodiscard]] std::vector<ChunkRow> measure_chunks(Engine& engine, const ChunkSource& source, int runs);

}  // namespace headlight::program
