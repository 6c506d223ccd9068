#include "models/text_network.h"

#include <algorithm>
#include <utility>

#include "models/families/encoder_form.h"

namespace headlight::models {
namespace {

class EncoderNetwork : public TextNetwork {
 public:
  EncoderNetwork(headlight::Encoder encoder, const PositionRule& positions)
      : TextNetwork(encoder.options().width, encoder.options().token_types > 0, positions),
        encoder_(std::move(encoder)) {}

  void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
               std::span<const LayerProbabilities> probabilities) const override {
    encoder_.forward(engine, input, hidden, probabilities);
  }
  void reserve(Engine& engine, std::int64_t tokens) const override { encoder_.reserve(engine, tokens); }
  Layer& layer() noexcept override { return encoder_; }
  Weights weights_as_stored() const override { return as_network_weights(encoder_); }
  const headlight::Encoder* encoder() const noexcept override { return &encoder_; }

 private:
  headlight::Encoder encoder_;
};

class SpecifiedNetwork : public TextNetwork {
 public:
  SpecifiedNetwork(Network network, const PositionRule& positions)
      : TextNetwork(network.spec().width, network.spec().embedding.token_types > 0, positions),
        network_(std::move(network)),
        counts_distances_(
            std::any_of(network_.spec().blocks.begin(), network_.spec().blocks.end(), [](const BlockSpec& block) {
              const AttentionSpec& attention = block.attention;
              return attention.window_before >= 0 || attention.window_after >= 0 || attention.relative_bias;
            })) {}

  void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
               std::span<const LayerProbabilities> probabilities) const override {
    network_.forward(engine, input, hidden, probabilities);
  }
  void reserve(Engine& engine, std::int64_t tokens) const override { network_.reserve(engine, tokens); }
  Layer& layer() noexcept override { return network_; }
  Weights weights_as_stored() const override { return network_.weights_as_stored(); }
  bool counts_distances() const noexcept override { return counts_distances_; }

 private:
  Network network_;
  bool counts_distances_;
};

}  // namespace

std::unique_ptr<TextNetwork> make_text_network(headlight::Encoder encoder, const PositionRule& positions) {
  return std::make_unique<EncoderNetwork>(std::move(encoder), positions);
}

std::unique_ptr<TextNetwork> make_text_network(Network network, const PositionRule& positions) {
  return std::make_unique<SpecifiedNetwork>(std::move(network), positions);
}

}  // namespace headlight::models
