// The names of BERT's tensors, which RoBERTa has too.
#pragma once

#include <array>

#include "models/families/family.h"

namespace headlight::models {

inline constexpr std::array<TensorName, 12> kBertNames{{
    {"embeddings.word", "embeddings.word_embeddings"},
    {"embeddings.position", "embeddings.position_embeddings"},
    {"embeddings.token_type", "embeddings.token_type_embeddings"},
    {"embeddings.norm", "embeddings.LayerNorm"},
    {"blocks.N.attention.query", "encoder.layer.N.attention.self.query"},
    {"blocks.N.attention.key", "encoder.layer.N.attention.self.key"},
    {"blocks.N.attention.value", "encoder.layer.N.attention.self.value"},
    {"blocks.N.attention.output", "encoder.layer.N.attention.output.dense"},
    {"blocks.N.attention.sum", "encoder.layer.N.attention.output.LayerNorm"},
    {"blocks.N.feed_forward.up", "encoder.layer.N.intermediate.dense"},
    {"blocks.N.feed_forward.down", "encoder.layer.N.output.dense"},
    {"blocks.N.feed_forward.sum", "encoder.layer.N.output.LayerNorm"},
}};

}  // namespace headlight::models
