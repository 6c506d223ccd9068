// What encoder and decoder layers refuse.
#pragma once

#include <string>
#include <string_view>

#include "headlight/layers/transformer.h"
#include "layers/checked_options.h"
#include "layers/hidden_states.h"
#include "layers/output_places.h"
#include "layers/sizes.h"

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

// What backward() of a layer of that width reads and writes for x and y.
inline void check_gradients(std::string_view layer, const View<const float, 3>& x, std::int64_t width,
                            const View<const float, 3>& y_gradient, const View<float, 3>& x_gradient) {
  const ops::Extent x_extent = check_x(layer, x, width);
  const ops::Extent from = ops::check_view(layer, "y_gradient", y_gradient);
  const ops::Extent to = ops::check_view(layer, "x_gradient", x_gradient);
  ops::check_shape(layer, "y_gradient", y_gradient.shape, x.shape, "the shape of x");
  ops::check_shape(layer, "x_gradient", x_gradient.shape, x.shape, "the shape of x");
  ops::check_no_self_overlap(layer, "x_gradient", x_gradient.shape, x_gradient.strides);
  ops::check_disjoint(layer, "x_gradient", to, "x", x_extent);
  ops::check_same_or_disjoint(layer, "x_gradient", x_gradient, to, "y_gradient", y_gradient, from);
}

}  // namespace headlight::layers
