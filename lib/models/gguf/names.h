// The names of tensors in GGUF files (gguf-py/gguf/tensor_mapping.py of https://github.com/ggml-org/llama.cpp).
#pragma once

#include <array>

#include "models/families/family.h"

namespace headlight::models {

// BERT, and Nomic BERT, whose feed-forward is gated. Attention has one tensor, or three.
inline constexpr std::array<TensorName, 16> kGgufBertNames{{
    {"embeddings.word", "token_embd"},
    {"embeddings.position", "position_embd"},
    {"embeddings.token_type", "token_types"},
    {"embeddings.norm", "token_embd_norm"},
    {"blocks.N.attention.query", "blk.N.attn_q"},
    {"blocks.N.attention.query", "blk.N.attn_qkv", 0, 3},
    {"blocks.N.attention.key", "blk.N.attn_k"},
    {"blocks.N.attention.key", "blk.N.attn_qkv", 1, 3},
    {"blocks.N.attention.value", "blk.N.attn_v"},
    {"blocks.N.attention.value", "blk.N.attn_qkv", 2, 3},
    {"blocks.N.attention.output", "blk.N.attn_output"},
    {"blocks.N.attention.sum", "blk.N.attn_output_norm"},
    {"blocks.N.feed_forward.gate", "blk.N.ffn_gate"},
    {"blocks.N.feed_forward.up", "blk.N.ffn_up"},
    {"blocks.N.feed_forward.down", "blk.N.ffn_down"},
    {"blocks.N.feed_forward.sum", "blk.N.layer_output_norm"},
}};

// ModernBERT: the gate stands above what it multiplies, in one tensor.
inline constexpr std::array<TensorName, 12> kGgufModernBertNames{{
    {"embeddings.word", "token_embd"},
    {"embeddings.norm", "token_embd_norm"},
    {"blocks.N.attention.before", "blk.N.attn_norm"},
    {"blocks.N.attention.query", "blk.N.attn_qkv", 0, 3},
    {"blocks.N.attention.key", "blk.N.attn_qkv", 1, 3},
    {"blocks.N.attention.value", "blk.N.attn_qkv", 2, 3},
    {"blocks.N.attention.output", "blk.N.attn_output"},
    {"blocks.N.feed_forward.before", "blk.N.ffn_norm"},
    {"blocks.N.feed_forward.gate", "blk.N.ffn_up", 0, 2},
    {"blocks.N.feed_forward.up", "blk.N.ffn_up", 1, 2},
    {"blocks.N.feed_forward.down", "blk.N.ffn_down"},
    {"norm", "output_norm"},
}};

// Llama and those after it; Gemma 3 normalises behind each half, too.
inline constexpr std::array<TensorName, 15> kGgufLlamaNames{{
    {"embeddings.word", "token_embd"},
    {"blocks.N.attention.before", "blk.N.attn_norm"},
    {"blocks.N.attention.query", "blk.N.attn_q"},
    {"blocks.N.attention.key", "blk.N.attn_k"},
    {"blocks.N.attention.value", "blk.N.attn_v"},
    {"blocks.N.attention.output", "blk.N.attn_output"},
    {"blocks.N.attention.query_norm", "blk.N.attn_q_norm"},
    {"blocks.N.attention.key_norm", "blk.N.attn_k_norm"},
    {"blocks.N.attention.after", "blk.N.post_attention_norm"},
    {"blocks.N.feed_forward.before", "blk.N.ffn_norm"},
    {"blocks.N.feed_forward.gate", "blk.N.ffn_gate"},
    {"blocks.N.feed_forward.up", "blk.N.ffn_up"},
    {"blocks.N.feed_forward.down", "blk.N.ffn_down"},
    {"blocks.N.feed_forward.after", "blk.N.post_ffw_norm"},
    {"norm", "output_norm"},
}};

}  // namespace headlight::models
