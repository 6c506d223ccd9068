#include "harness/family_block.h"

#include <algorithm>
#include <cmath>

namespace headlight::bench {
namespace {

// Ids are looked up one by one: how many there are does not matter.
constexpr std::int64_t kVocabulary = 1000;

NormSpec layer_norm(bool bias) { return {.kind = NormKind::layer, .epsilon = 1e-5f, .bias = bias}; }
NormSpec rms_norm(bool one_plus_weight) {
  return {.kind = NormKind::rms, .epsilon = 1e-6f, .one_plus_weight = one_plus_weight};
}

Family modernbert() {
  BlockSpec block;
  block.attention = {.heads = 12, .rotary = {.dims = 64, .base = 10000}, .window_before = 64, .window_after = 64};
  block.attention_residual.before = block.feed_forward_residual.before = layer_norm(false);
  block.feed_forward = {.hidden_width = 1152, .activation = Activation::gelu, .gated = true};
  return {"ModernBERT-base",
          22,
          {.width = 768, .embedding = {.vocabulary = kVocabulary, .norm = layer_norm(false)}, .blocks = {block}}};
}

Family xlm_roberta() {
  BlockSpec block;
  block.attention = {.heads = 12, .input_bias = true, .output_bias = true};
  block.attention_residual.sum = block.feed_forward_residual.sum = layer_norm(true);
  block.feed_forward = {.hidden_width = 3072, .activation = Activation::gelu, .input_bias = true, .output_bias = true};
  return {"XLM-R-base",
          12,
          {.width = 768, .embedding = {.vocabulary = kVocabulary, .norm = layer_norm(true)}, .blocks = {block}}};
}

// Norms before and behind both parts, and of queries and keys; one head of keys.
Family embedding_gemma() {
  BlockSpec block;
  block.attention = {.heads = 3,
                     .key_value_heads = 1,
                     .head_dim = 256,
                     .query_norm = rms_norm(true),
                     .key_norm = rms_norm(true),
                     .rotary = {.dims = 256, .base = 10000},
                     .window_before = 256,
                     .window_after = 256};
  block.attention_residual.before = block.attention_residual.after = rms_norm(true);
  block.feed_forward_residual = block.attention_residual;
  block.feed_forward = {.hidden_width = 1152, .activation = Activation::gelu_tanh, .gated = true};
  const float scale = std::sqrt(768.0f);
  return {"EmbeddingGemma-300M",
          24,
          {.width = 768, .embedding = {.vocabulary = kVocabulary, .scale = scale}, .blocks = {block}}};
}

Family qwen3() {
  BlockSpec block;
  block.attention = {.heads = 16,
                     .key_value_heads = 8,
                     .head_dim = 128,
                     .query_norm = rms_norm(false),
                     .key_norm = rms_norm(false),
                     .rotary = {.dims = 128, .base = 1e6},
                     .causal = true};
  block.attention_residual.before = block.feed_forward_residual.before = rms_norm(false);
  block.feed_forward = {.hidden_width = 3072, .activation = Activation::silu, .gated = true};
  return {"Qwen3-Embedding-0.6B", 28, {.width = 1024, .embedding = {.vocabulary = kVocabulary}, .blocks = {block}}};
}

// Of one sequence.
double visible_pairs(const AttentionSpec& attention, std::int64_t tokens) {
  double pairs = 0;
  for (std::int64_t row = 0; row < tokens; ++row) {
    const std::int64_t begin =
        attention.window_before < 0 ? 0 : std::max<std::int64_t>(0, row - attention.window_before);
    std::int64_t end = attention.window_after < 0 ? tokens : std::min(tokens, row + attention.window_after + 1);
    if (attention.causal) end = std::min(end, row + 1);
    pairs += static_cast<double>(end - begin);
  }
  return pairs;
}

}  // namespace

std::vector<Family> published_families() { return {modernbert(), xlm_roberta(), embedding_gemma(), qwen3()}; }

double block_operations(const NetworkSpec& network, std::int64_t sequences, std::int64_t tokens) {
  const BlockSpec& block = network.blocks.front();
  const AttentionSpec& attention = block.attention;
  const std::int64_t key_value_heads = attention.key_value_heads == 0 ? attention.heads : attention.key_value_heads;
  const std::int64_t head_dim = attention.head_dim == 0 ? network.width / attention.heads : attention.head_dim;
  const std::int64_t projections = 2 * (attention.heads + key_value_heads) * head_dim;
  const std::int64_t of_rows = (block.feed_forward.gated ? 3 : 2) * block.feed_forward.hidden_width;
  const double products = static_cast<double>(2 * network.width * (projections + of_rows));
  return static_cast<double>(sequences) *
         (static_cast<double>(tokens) * products +
          static_cast<double>(4 * attention.heads * head_dim) * visible_pairs(attention, tokens));
}

}  // namespace headlight::bench
