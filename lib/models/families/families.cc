#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/families/tables.h"

namespace headlight::models {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kNotRead{{
    {"deberta", "its scores have terms of relative positions, which are not built"},
    {"deberta-v2", "its scores have terms of relative positions, which are not built"},
    {"t5", "it is an encoder and a decoder, of which neither is read"},
}};

}  // namespace

std::span<const Family> families() noexcept {
  static const std::array kAll{kDistilBert, kRoberta,  kXlmRoberta, kCamembert, kModernBert, kNomicBert, kGemma3Text,
                               kQwen3,      kEuroBert, kLlama,      kNew,       kGte,        kMpnet};
  return kAll;
}

const Family* find_family(std::string_view model_type) noexcept {
  for (const Family& family : families()) {
    if (family.model_type == model_type) return &family;
  }
  return nullptr;
}

std::string_view why_not_read(std::string_view model_type) noexcept {
  for (const auto& [name, why] : kNotRead) {
    if (name == model_type) return why;
  }
  return "";
}

PostNormSizes post_norm_sizes(const files::JsonValue& config) {
  PostNormSizes sizes;
  sizes.width = size(config, "hidden_size", 1);
  sizes.blocks = size(config, "num_hidden_layers", 0, std::nullopt, kMostBlocks);
  sizes.heads = whole_heads(config, sizes.width, "num_attention_heads");
  sizes.hidden_width = size(config, "intermediate_size", 1);
  sizes.activation = activation(config, "hidden_act", "gelu");
  sizes.epsilon = static_cast<float>(number(config, "layer_norm_eps", 1e-12, 0, 1));
  return sizes;
}

NetworkSpec post_norm(const PostNormSizes& sizes) {
  const NormSpec norm = layer_norm_spec(sizes.epsilon);
  BlockSpec block;
  block.attention = {.heads = sizes.heads.heads,
                     .key_value_heads = sizes.heads.key_value_heads,
                     .head_dim = sizes.heads.head_dim,
                     .input_bias = true,
                     .output_bias = true};
  block.attention_residual.sum = norm;
  block.feed_forward = {
      .hidden_width = sizes.hidden_width, .activation = sizes.activation, .input_bias = true, .output_bias = true};
  block.feed_forward_residual.sum = norm;
  NetworkSpec network{.width = sizes.width};
  network.embedding.norm = norm;
  network.blocks.assign(static_cast<std::size_t>(sizes.blocks), block);
  return network;
}

NetworkSpec llama_like(const files::JsonValue& config, std::string_view activation_key, double epsilon,
                       bool one_plus_weight) {
  NetworkSpec network{.width = size(config, "hidden_size", 1)};
  network.embedding.vocabulary = size(config, "vocab_size", 1);
  network.last_norm = rms_norm_spec(number(config, "rms_norm_eps", epsilon, 0, 1), one_plus_weight);
  const HeadSizes heads = head_sizes(config, network.width);
  const bool bias = flag(config, "attention_bias");
  BlockSpec block;
  block.attention = {.heads = heads.heads,
                     .key_value_heads = heads.key_value_heads,
                     .head_dim = heads.head_dim,
                     .input_bias = bias,
                     .output_bias = bias};
  block.attention_residual.before = network.last_norm;
  block.feed_forward = {
      .hidden_width = size(config, "intermediate_size", 1),
      .activation = activation(config, activation_key, one_plus_weight ? "gelu_pytorch_tanh" : "silu"),
      .gated = true};
  block.feed_forward_residual.before = network.last_norm;
  const std::int64_t blocks = size(config, "num_hidden_layers", 0, std::nullopt, kMostBlocks);
  network.blocks.assign(static_cast<std::size_t>(blocks), block);
  return network;
}

}  // namespace headlight::models
