// What encoder and decoder layers have in common: the step around each part.
#pragma once

#include <string>
#include <string_view>

#include "headlight/layers/transformer.h"
#include "layers/checked_options.h"
#include "layers/hidden_states.h"
#include "layers/output_places.h"
#include "layers/rows.h"
#include "layers/sizes.h"
#include "runtime/parallel.h"

namespace headlight::layers {

// `norm` if it is one of the enum; else throws.
inline Norm checked_norm(std::string_view layer, Norm norm) {
  if (norm > Norm::pre) {
    ops::fail(layer, "norm is ", static_cast<int>(norm), ", expected one of the enum");
  }
  return norm;
}

inline MultiHeadAttentionOptions attention_options(const TransformerLayerOptions& options) {
  return {.width = options.width,
          .heads = options.heads,
          .bias = options.bias,
          .dropout = options.dropout,
          .merge = options.merge,
          .orthogonal = options.orthogonal};
}

inline FeedForwardOptions feed_forward_options(const TransformerLayerOptions& options) {
  return {.width = options.width,
          .hidden_width = options.feed_forward_width,
          .activation = options.activation,
          .bias = options.bias,
          .dropout = options.dropout};
}

// With every size set. Throws std::invalid_argument, OutOfMemory.
inline TransformerLayerOptions checked(std::string_view layer, TransformerLayerOptions options) {
  checked_norm(layer, options.norm);
  probability(layer, "dropout", options.dropout);
  static_cast<void>(checked(attention_options(options)));
  options.feed_forward_width = checked(feed_forward_options(options)).hidden_width;
  matrix_shape("Linear", "weight", options.feed_forward_width, options.width);
  return options;
}

// The memory [B, Lm, width] of a decoder layer, as forward() and backward() read it. Returns the addresses touched.
inline ops::Extent check_memory(std::string_view layer, const View<const float, 3>& memory, std::int64_t batch,
                                std::int64_t width) {
  const ops::Extent extent = ops::check_view(layer, "memory", memory);
  const std::array<std::int64_t, 3> expected = {batch, -1, width};
  ops::check_shape(layer, "memory", memory.shape, expected, "[B, Lm, E]");
  return extent;
}

// What either attention of a decoder layer is asked for.
inline void check_decoder_outputs(std::string_view layer, const AttentionOptions& self_options,
                                  const AttentionOptions& memory_options, const View<const float, 3>& x,
                                  const View<const float, 3>& memory, const View<float, 3>& y) {
  constexpr OptionNames kSelf = {"self_options.log_sum_exp", "self_options.probabilities.per_head",
                                 "self_options.probabilities.averaged", "self_options.scores"};
  constexpr OptionNames kMemory = {"memory_options.log_sum_exp", "memory_options.probabilities.per_head",
                                   "memory_options.probabilities.averaged", "memory_options.scores"};
  OutputPlaces(layer)
      .writes(kSelf, self_options)
      .writes(kMemory, memory_options)
      .apart_from("x", x)
      .apart_from("memory", memory)
      .apart_from("y", y);
}

inline void normalize(Engine& engine, const LayerNorm& norm, View<const float, 3> x, View<float, 3> y) {
  for_each_matrix(
      x.extent(0), [&](View<const float, 2> from, View<float, 2> to) { norm.forward(engine, from, to); }, x, y);
}

// Bytes of scratch that a Pre-LN layer needs for its normalised input.
inline std::size_t normalized_bytes(Norm norm, std::string_view layer, std::int64_t batch, std::int64_t length,
                                    std::int64_t width) {
  runtime::ScratchLayout layout;
  if (norm == Norm::pre) layout.add<float>(row_count(layer, batch, length), row_distance(width));
  return layout.bytes();
}

// One step of a layer, x → y, with part(in, out, residual) computing out = F(in) + residual.
// Post-LN: y = LN(F(x) + x). Pre-LN: y = F(LN(x)) + x, LN(x) in `normalized`.
template <class Part>
void residual_step(Engine& engine, Norm norm, const LayerNorm& layer_norm, View<const float, 3> x, View<float, 3> y,
                   View<float, 3> normalized, Part part) {
  if (norm == Norm::post) {
    part(x, y, x);
    normalize(engine, layer_norm, y, y);
  } else {
    normalize(engine, layer_norm, x, normalized);
    part(normalized, y, x);
  }
}

// The buffer for LN(x) in Pre-LN layers: [B, L, E] in scratch memory, or nothing.
inline View<float, 3> normalized_view(Norm norm, const runtime::Scratch& memory,
                                      const View<const float, 3>& x) noexcept {
  if (norm == Norm::post) return {};
  return spaced_rows(reinterpret_cast<float*>(memory.data()), x.shape);
}

}  // namespace headlight::layers
