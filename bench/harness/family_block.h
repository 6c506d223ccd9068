// Blocks of published encoders: their shapes, one block each, with seeded weights.
#pragma once

#include <cstdint>
#include <vector>

#include "headlight/layers/network_spec.h"

namespace headlight::bench {

struct Family {
  const char* name;
  std::int64_t layers;  // of the published model
  NetworkSpec network;  // a table of words, and the block that most of those layers are
};

// ModernBERT-base, XLM-R-base, EmbeddingGemma-300M, Qwen3-Embedding-0.6B. Blocks with a window where most have one.
[[nodiscard]] std::vector<Family> published_families();

// Two for each multiply-add of the block's products and of its attention, over visible pairs, of that batch.
[[nodiscard]] double block_operations(const NetworkSpec& network, std::int64_t sequences, std::int64_t tokens);

}  // namespace headlight::bench
