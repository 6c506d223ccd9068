#include "models/text_network.h"

#include <utility>

namespace headlight::models {
namespace {

class EncoderNetwork : public TextNetwork {
 public:
  EncoderNetwork(headlight::Encoder encoder, const PositionRule& positions)
      : TextNetwork(encoder.options().width, encoder.options().token_types > 0, positions),
        encoder_(std::move(encoder)) {}

  void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden) const override {
    encoder_.forward(engine, input, hidden);
  }
  void reserve(Engine& engine, std::int64_t tokens) const override { encoder_.reserve(engine, tokens); }
  Layer& layer() noexcept override { return encoder_; }
  const headlight::Encoder* encoder() const noexcept override { return &encoder_; }

 private:
  headlight::Encoder encoder_;
};

}  // namespace

std::unique_ptr<TextNetwork> make_text_network(headlight::Encoder encoder, const PositionRule& positions) {
  return std::make_unique<EncoderNetwork>(std::move(encoder), positions);
}

}  // namespace headlight::models
