// The families, each defined in the file of its name; and what several of them are made of.
#pragma once

#include <cstdint>
#include <string_view>

#include "files/json_value.h"
#include "headlight/layers/network_spec.h"
#include "models/families/config_values.h"
#include "models/families/family.h"

namespace headlight::models {

extern const Family kDistilBert, kRoberta, kXlmRoberta, kCamembert, kModernBert, kNomicBert, kGemma3Text, kQwen3,
    kEuroBert, kLlama, kNew, kGte, kMpnet;

// BERT's head, over the pooler of its network.
inline constexpr HeadLayer kBertHeadLayers[] = {
    {"pooler.dense", VectorLayer::Kind::dense, VectorLayer::Function::tanh},
    {"classifier"},
};
inline constexpr Head kBertHead{.layers = kBertHeadLayers};

// A normalisation of the mean and variance, with a bias, or of the mean square.
[[nodiscard]] inline NormSpec layer_norm_spec(double epsilon, bool bias = true) {
  return {.kind = NormKind::layer, .epsilon = static_cast<float>(epsilon), .bias = bias};
}
[[nodiscard]] inline NormSpec rms_norm_spec(double epsilon, bool one_plus_weight = false) {
  return {.kind = NormKind::rms, .epsilon = static_cast<float>(epsilon), .one_plus_weight = one_plus_weight};
}

// A network of equal blocks that normalise behind each half, as BERT's do.
struct PostNormSizes {
  std::int64_t width = 0, blocks = 0, hidden_width = 0;
  HeadSizes heads{};
  Activation activation = Activation::gelu;
  float epsilon = 1e-12f;
};
// Those by the keys of BERT.
[[nodiscard]] PostNormSizes post_norm_sizes(const files::JsonValue& config);
// The embedding's tables are still to be set.
[[nodiscard]] NetworkSpec post_norm(const PostNormSizes& sizes);

// A network of blocks that normalise x² before each half and behind the last block, with a gated feed-forward, of the
// keys that Llama and those after it have: everything but positions, masks and windows. `epsilon` stands where the
// configuration says none.
[[nodiscard]] NetworkSpec llama_like(const files::JsonValue& config, std::string_view activation_key, double epsilon,
                                     bool one_plus_weight = false);

}  // namespace headlight::models
