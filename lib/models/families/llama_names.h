// The names of Llama's tensors, which most models after it have too.
#pragma once

#include <array>
#include <string_view>

#include "models/families/family.h"

namespace headlight::models {

inline constexpr std::array<TensorName, 13> kLlamaNames{{
    {"embeddings.word", "embed_tokens"},
    {"blocks.N.attention.before", "layers.N.input_layernorm"},
    {"blocks.N.attention.query", "layers.N.self_attn.q_proj"},
    {"blocks.N.attention.key", "layers.N.self_attn.k_proj"},
    {"blocks.N.attention.value", "layers.N.self_attn.v_proj"},
    {"blocks.N.attention.output", "layers.N.self_attn.o_proj"},
    {"blocks.N.attention.query_norm", "layers.N.self_attn.q_norm"},
    {"blocks.N.attention.key_norm", "layers.N.self_attn.k_norm"},
    {"blocks.N.feed_forward.before", "layers.N.post_attention_layernorm"},
    {"blocks.N.feed_forward.gate", "layers.N.mlp.gate_proj"},
    {"blocks.N.feed_forward.up", "layers.N.mlp.up_proj"},
    {"blocks.N.feed_forward.down", "layers.N.mlp.down_proj"},
    {"norm", "norm"},
}};
inline constexpr std::array<std::string_view, 2> kLlamaPrefixes{"", "model."};
inline constexpr std::array<std::string_view, 3> kLlamaOwn{"embed_tokens.", "layers.", "norm."};
inline constexpr std::array<std::string_view, 1> kLlamaComputed{"inv_freq"};

}  // namespace headlight::models
