// What a forward pass over the tokens of sequences is given, and what it may write out of each layer beside the hidden
// states.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "headlight/layers/encoder.h"

namespace headlight::layers {

// Throws unless the offsets are those of so many tokens.
void check_token_offsets(std::string_view owner, const EncoderInput& input, std::int64_t tokens);

struct HeadShape {
  std::int64_t heads;
  std::int64_t head_dim;
};

// The heads of each of so many layers.
class HeadShapes {
 public:
  [[nodiscard]] virtual std::int64_t layers() const noexcept = 0;
  [[nodiscard]] virtual HeadShape at(std::int64_t layer) const noexcept = 0;

 protected:
  ~HeadShapes() = default;
};

// Throws unless the lists name each layer at most once, and every entry asks for what its layer has, to be written
// apart from hidden, from all that forward() reads and from what other entries ask for.
void check_layer_outputs(std::string_view owner, const HeadShapes& shapes, const EncoderInput& input,
                         const View<float, 2>& hidden, std::span<const LayerProbabilities> probabilities,
                         std::span<const LayerHeads> heads);

}  // namespace headlight::layers
