// From the hidden states of texts to a vector of each: poolings, and the layers behind them.
#pragma once

#include <cstdint>
#include <span>

#include "headlight/engine.h"
#include "headlight/layers/encoder.h"
#include "headlight/models/text_encoder.h"
#include "headlight/tensor.h"

namespace headlight::models {

// What vectors pass through on their way, kept for the next call.
class VectorScratch {
 public:
  // Room for `texts` texts of a call, and what their products take from the engine. Throws OutOfMemory.
  void reserve(Engine& engine, const ModelOptions& options, std::int64_t texts);

  // And for so many tokens that go through dense layers before they are pooled.
  void reserve_tokens(Engine& engine, std::span<const VectorLayer> layers, std::int64_t width, std::int64_t tokens);

  // Its parts, [rows, width] each: two of vectors, two of tokens.
  [[nodiscard]] View<float, 2> rows(int part, std::int64_t rows, std::int64_t width);

 private:
  Tensor<float, 1> memory_[4];
};

// Puts every number through the function.
void apply_function(VectorLayer::Function function, View<float, 2> rows) noexcept;

// hidden [N, E] through dense layers, row by row. Throws OutOfMemory.
[[nodiscard]] View<const float, 2> through_layers(Engine& engine, std::span<const VectorLayer> layers,
                                                  View<const float, 2> hidden, VectorScratch& scratch);

// hidden [N, E] of the sequences of `input` → out [n, D], the first D ≤ vector_width(options) numbers of each vector,
// then normalised. The first prompt_tokens of each sequence are left out, if options.pool_prompt is false. A sequence
// without tokens that count has a vector of zeros behind the pooling. Tokens at the end of a sequence whose id is
// `padding` do not count, unless they are its first. Throws OutOfMemory.
void make_vectors(Engine& engine, const ModelOptions& options, std::int64_t prompt_tokens, bool normalize,
                  const EncoderInput& input, View<const float, 2> hidden, View<float, 2> out, VectorScratch& scratch,
                  std::int64_t padding = -1);

// The rows of out [B, D] that are those of the sequences of a batch, which begin with number `first`.
[[nodiscard]] inline View<float, 2> rows_of_batch(const View<float, 2>& out, std::size_t first,
                                                  const EncoderInput& input) noexcept {
  return {out.data + static_cast<std::int64_t>(first) * out.stride(0),
          {static_cast<std::int64_t>(input.offsets.size()) - 1, out.extent(1)},
          out.strides};
}

}  // namespace headlight::models
