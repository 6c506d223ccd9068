#include "tools/headlight/support/model_network.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "headlight/models/errors.h"

namespace headlight::program {
namespace {

NetworkSizes network_sizes(const EncoderOptions& options) {
  return {.layers = options.layers,
          .width = options.width,
          .heads = options.heads,
          .key_value_heads = options.heads,
          .head_dim = options.width / options.heads,
          .merge = options.merge};
}

NetworkSizes network_sizes(const AttentionSpec& attention) {
  return {.heads = attention.heads,
          .key_value_heads = attention.key_value_heads,
          .head_dim = attention.head_dim,
          .merge = attention.merge};
}

View<const float, 2> some_rows(const Weights& weights, const std::string& name, std::int64_t first, std::int64_t rows) {
  const WeightView& weight = weights.at(name);
  const std::int64_t columns = weight.shape[1];
  return {weight.values.data() + first * columns, {rows, columns}};
}

}  // namespace

ModelNetwork::ModelNetwork(const models::TextEncoder& model, const std::string& name) {
  if (model.options().encoder.layers < 1) throw models::FileError(name, "has no layers, expected at least 1");
  if (model.has_network()) {
    network_ = &model.network();
    sizes_ = network_sizes(model.network().options());
    has_token_types_ = model.network().options().token_types > 0;
    return;
  }
  const auto* const network = dynamic_cast<const Network*>(&model.layer());
  if (network == nullptr) throw models::FileError(name, "has a network without heads, expected one with them");
  network_ = network;
  const NetworkSpec& spec = network->spec();
  sizes_ = network_sizes(spec.blocks.front().attention);
  for (const BlockSpec& block : spec.blocks) {
    const NetworkSizes other = network_sizes(block.attention);
    if (std::tie(other.heads, other.key_value_heads, other.head_dim, other.merge) !=
        std::tie(sizes_.heads, sizes_.key_value_heads, sizes_.head_dim, sizes_.merge)) {
      throw models::FileError(name, "has layers that differ in their heads, expected the same in all");
    }
  }
  sizes_.layers = static_cast<std::int64_t>(spec.blocks.size());
  sizes_.width = spec.width;
  has_token_types_ = spec.embedding.token_types > 0;
}

void ModelNetwork::forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
                           std::span<const LayerProbabilities> probabilities, std::span<const LayerHeads> heads) const {
  std::visit([&](const auto* network) { network->forward(engine, input, hidden, probabilities, heads); }, network_);
}

Weights ModelNetwork::weights() const {
  return std::visit([](const auto* network) { return network->weights(); }, network_);
}

ModelNetwork::Projections ModelNetwork::projections(const Weights& weights, std::int64_t layer) const {
  const std::int64_t of_query = sizes_.columns(), of_key = sizes_.key_value_heads * sizes_.head_dim;
  const std::string number = std::to_string(layer);
  if (std::holds_alternative<const Encoder*>(network_)) {
    const std::string attention = "layers." + number + ".self_attn.";
    return {some_rows(weights, attention + "in_proj_weight", 0, of_query),
            some_rows(weights, attention + "in_proj_weight", of_query, of_key),
            some_rows(weights, attention + "out_proj.weight", 0, sizes_.width)};
  }
  const std::string attention = "blocks." + number + ".attention.";
  return {some_rows(weights, attention + "query.weight", 0, of_query),
          some_rows(weights, attention + "key.weight", 0, of_key),
          some_rows(weights, attention + "output.weight", 0, sizes_.width)};
}

std::variant<Encoder, Network> ModelNetwork::first_layers(std::int64_t layers) const {
  if (const auto* const encoder = std::get_if<const Encoder*>(&network_)) {
    EncoderOptions options = (*encoder)->options();
    options.layers = layers;
    return Encoder(options);
  }
  NetworkSpec spec = std::get<const Network*>(network_)->spec();
  spec.blocks.resize(static_cast<std::size_t>(layers));
  return Network(spec);
}

std::variant<Encoder, Network> ModelNetwork::trainable() const {
  const auto loaded = [this](auto network) {
    network.load(weights());
    network.set_training(true);
    return std::variant<Encoder, Network>(std::move(network));
  };
  if (const auto* const encoder = std::get_if<const Encoder*>(&network_)) {
    EncoderOptions options = (*encoder)->options();
    options.dropout = 0;
    return loaded(Encoder(options));
  }
  NetworkSpec spec = std::get<const Network*>(network_)->spec();
  spec.dropout = 0;
  return loaded(Network(spec));
}

TokensAround tokens_around(const models::TextEncoder& model) {
  const std::vector<std::int64_t> none = model.tokenize(""), some = model.tokenize("a");
  const auto differ = std::mismatch(none.begin(), none.end(), some.begin(), some.end()).first;
  return {.before = differ - none.begin(), .behind = none.end() - differ};
}

}  // namespace headlight::program
