#include "models/families/encoder_form.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "models/families/tables.h"

namespace headlight::models {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 4> kEmbeddings{{
    {"embeddings.word.weight", "word_embeddings.weight"},
    {"embeddings.position.weight", "position_embeddings.weight"},
    {"embeddings.token_type.weight", "token_type_embeddings.weight"},
    {"embeddings.norm.", "norm."},
}};
constexpr std::array<std::pair<const char*, const char*>, 8> kOfBlock{{
    {"attention.query.weight", "self_attn.q_proj_weight"},
    {"attention.key.weight", "self_attn.k_proj_weight"},
    {"attention.value.weight", "self_attn.v_proj_weight"},
    {"attention.output.", "self_attn.out_proj."},
    {"attention.sum.", "norm1."},
    {"feed_forward.up.", "linear1."},
    {"feed_forward.down.", "linear2."},
    {"feed_forward.sum.", "norm2."},
}};

constexpr std::array<const char*, 3> kHeadInputs{"query", "key", "value"};

// Takes one weight along, or, of a name that ends with a dot, the weight and the bias.
void rename(const Weights& named, const std::string& from, const std::string& to, Weights& into) {
  if (!from.ends_with('.')) {
    if (const auto found = named.find(from); found != named.end()) into.emplace(to, found->second);
    return;
  }
  for (const char* part : {"weight", "bias"}) into.emplace(to + part, named.find(from + part)->second);
}

}  // namespace

std::optional<EncoderOptions> as_encoder(const NetworkSpec& spec) {
  const EmbeddingSpec& embedding = spec.embedding;
  const NormSpec& norm = embedding.norm;
  const bool embeds = embedding.positions > 0 && embedding.scale == 1 && norm.kind == NormKind::layer && norm.bias &&
                      !spec.last_norm && !spec.blocks.empty();
  if (!embeds) return std::nullopt;
  const BlockSpec& first = spec.blocks.front();
  const auto blocks = static_cast<std::int64_t>(spec.blocks.size());
  const NetworkSpec wanted =
      post_norm({.width = spec.width,
                 .blocks = blocks,
                 .hidden_width = first.feed_forward.hidden_width,
                 .heads = {first.attention.heads, first.attention.heads, first.attention.head_dim},
                 .activation = first.feed_forward.activation,
                 .epsilon = norm.epsilon});
  if (spec.blocks != wanted.blocks || first.attention.heads * first.attention.head_dim != spec.width)
    return std::nullopt;
  EncoderOptions options;
  options.vocabulary = embedding.vocabulary;
  options.max_positions = embedding.positions;
  options.token_types = embedding.token_types;
  options.width = spec.width;
  options.heads = first.attention.heads;
  options.feed_forward_width = first.feed_forward.hidden_width;
  options.layers = blocks;
  options.norm = Norm::post;
  options.activation = first.feed_forward.activation;
  options.layer_norm_epsilon = norm.epsilon;
  return options;
}

EncoderWeights as_encoder_weights(const Weights& network, std::int64_t blocks) {
  EncoderWeights named;
  for (const auto& [from, to] : kEmbeddings) rename(network, from, to, named.weights);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::string from = "blocks." + std::to_string(block) + ".", to = "layers." + std::to_string(block) + ".";
    for (const auto& [theirs, ours] : kOfBlock) rename(network, from + theirs, to + ours, named.weights);
    std::vector<float>& bias = named.joined.emplace_back();
    for (const char* const part : kHeadInputs) {
      const WeightView& view = network.find(from + "attention." + part + ".bias")->second;
      bias.insert(bias.end(), view.values.begin(), view.values.end());
    }
    named.weights.emplace(to + "self_attn.in_proj_bias", WeightView{{static_cast<std::int64_t>(bias.size())}, bias});
  }
  return named;
}

Weights as_network_weights(const headlight::Encoder& encoder) {
  const std::int64_t blocks = encoder.options().layers;
  const auto ours_of = [](std::int64_t block) { return "layers." + std::to_string(block) + "."; };
  Weights like;  // queries, keys and values by themselves, as they were lent
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (std::size_t part = 0; part < kHeadInputs.size(); ++part) {
      like.emplace(ours_of(block) + kOfBlock[part].second, WeightView());
    }
  }
  const Weights all = encoder.weights_as_stored(like);
  Weights named;
  for (const auto& [theirs, ours] : kEmbeddings) rename(all, ours, theirs, named);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::string to = "blocks." + std::to_string(block) + ".", from = ours_of(block);
    for (const auto& [theirs, ours] : kOfBlock) rename(all, from + ours, to + theirs, named);
    const std::span<const float> bias = all.find(from + "self_attn.in_proj_bias")->second.values;
    const std::size_t third = bias.size() / kHeadInputs.size();
    for (std::size_t part = 0; part < kHeadInputs.size(); ++part) {
      named.emplace(to + "attention." + kHeadInputs[part] + ".bias",
                    WeightView{{static_cast<std::int64_t>(third)}, bias.subspan(third * part, third)});
    }
  }
  return named;
}

}  // namespace headlight::models
