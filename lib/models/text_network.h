// The network of a TextEncoder, whichever it is.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "headlight/engine.h"
#include "headlight/layers/encoder.h"
#include "headlight/layers/network.h"
#include "headlight/parameters.h"
#include "headlight/tensor.h"
#include "models/families/family.h"
#include "models/saving/saved_source.h"

namespace headlight::models {

class TextNetwork {
 public:
  virtual ~TextNetwork() = default;

  // hidden [N, E] of input.positions that are rows of the network's table, or places in the sequence without one.
  // `probabilities` as Encoder::forward() has them.
  virtual void forward(Engine& engine, const EncoderInput& input, View<float, 2> hidden,
                       std::span<const LayerProbabilities> probabilities = {}) const = 0;
  virtual void reserve(Engine& engine, std::int64_t tokens) const = 0;
  // Parameters, weights and precision.
  [[nodiscard]] virtual Layer& layer() noexcept = 0;
  // By the names of headlight::Network, in the formats that they are in; valid until they change.
  [[nodiscard]] virtual Weights weights_as_stored() const = 0;
  // Null for another network.
  [[nodiscard]] virtual const headlight::Encoder* encoder() const noexcept { return nullptr; }

  [[nodiscard]] std::int64_t width() const noexcept { return width_; }
  [[nodiscard]] bool has_token_types() const noexcept { return token_types_; }
  // Whether tokens see a window alone or their scores have a bias by distance, which count the tokens that are there:
  // none may be left out between others.
  [[nodiscard]] virtual bool counts_distances() const noexcept { return false; }
  [[nodiscard]] const PositionRule& positions() const noexcept { return positions_; }
  // What save() writes as it was in the files that the model came from; null where its parts were made elsewhere.
  [[nodiscard]] const SavedSource* source() const noexcept { return source_.get(); }
  void set_source(std::unique_ptr<SavedSource> source) noexcept { source_ = std::move(source); }

 protected:
  TextNetwork(std::int64_t width, bool token_types, const PositionRule& positions)
      : width_(width), token_types_(token_types), positions_(positions) {}

 private:
  std::int64_t width_;
  bool token_types_;
  PositionRule positions_;
  std::unique_ptr<SavedSource> source_;
};

[[nodiscard]] std::unique_ptr<TextNetwork> make_text_network(headlight::Encoder encoder,
                                                             const PositionRule& positions = {});
[[nodiscard]] std::unique_ptr<TextNetwork> make_text_network(Network network, const PositionRule& positions);

}  // namespace headlight::models
