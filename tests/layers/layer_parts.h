// What layers of several parts are compared with: those parts, each a layer of its own.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers/transformer.h"
#include "headlight/tensor.h"
#include "layers/every_merge.h"
#include "support/quick.h"

namespace headlight::test {

// Samples x [B, L, E], in memory of their own or each before rows of others.
struct Samples {
  Samples(std::int64_t batch, std::int64_t length, std::int64_t width, bool apart)
      : memory({batch, apart ? length + 2 : length, width}),
        view(memory.data(), {batch, length, width}, memory.view().strides) {}

  Tensor<float, 3> memory;
  View<float, 3> view;
};

// Weights of a part: those whose names begin so.
inline Weights part_of(const Weights& weights, const std::string& prefix) {
  Weights part;
  for (const auto& [name, weight] : weights) {
    if (name.starts_with(prefix)) part[name.substr(prefix.size())] = weight;
  }
  return part;
}

// Sample by sample.
inline void normalize(Engine& engine, const LayerNorm& norm, View<const float, 3> x, View<float, 3> y) {
  for (std::int64_t b = 0; b < x.extent(0); ++b) {
    norm.forward(engine, View<const float, 2>(&x(b, 0, 0), {x.extent(1), x.extent(2)}, {x.stride(1), 1}),
                 View<float, 2>(&y(b, 0, 0), {y.extent(1), y.extent(2)}, {y.stride(1), 1}));
  }
}

// All rows of x, whose samples lie one behind another, as one matrix.
template <class T>
View<T, 2> rows(const View<T, 3>& x) {
  return {x.data, {x.extent(0) * x.extent(1), x.extent(2)}, {x.stride(1), 1}};
}

// From the gradient of what a norm made of x, that of x, to which a residual is added where there is one.
inline void normalize_backward(Engine& engine, LayerNorm& norm, View<const float, 3> x, View<const float, 3> y_gradient,
                               View<float, 3> x_gradient, View<const float, 3> residual = {}) {
  norm.backward(engine, rows(x), rows(y_gradient), rows(x_gradient),
                residual ? rows(residual) : View<const float, 2>());
}

inline MultiHeadAttention attention_of(const TransformerLayerOptions& options) {
  return MultiHeadAttention(
      {.width = options.width, .heads = options.heads, .bias = options.bias, .merge = options.merge});
}

inline FeedForward feed_forward_of(const TransformerLayerOptions& options) {
  return FeedForward({.width = options.width,
                      .hidden_width = options.feed_forward_width,
                      .activation = options.activation,
                      .bias = options.bias});
}

// Options of every merge and norm, with biases and without: heads of an odd width, and with one merge a feed-forward
// part that goes through its rows in pieces on the way back; in reduced sizes with one norm alone.
template <class Check>
void for_every_layer(Check check) {
  for (const Merge merge : kMerges) {
    for (const Norm norm : {Norm::post, Norm::pre}) {
      SCOPED_TRACE(testing::Message() << "merge " << static_cast<int>(merge) << ", norm " << static_cast<int>(norm));
      const bool in_pieces = merge == Merge::concatenate && !(quick() && norm == Norm::pre);
      check(TransformerLayerOptions{.width = 21,
                                    .heads = 3,
                                    .feed_forward_width = in_pieces ? 6000 : 40,
                                    .norm = norm,
                                    .dropout = 0,
                                    .bias = merge != Merge::weighted,
                                    .merge = merge});
    }
  }
}

// Expects the gradients of the parts' parameters, of which `for_each_part(f)` tells f their prefix and layer, in those
// of the layer.
template <class ForEachPart>
void expect_gradients_of_parts(Layer& layer, ForEachPart for_each_part) {
  const std::vector<Parameter> all = layer.parameters();
  for_each_part([&](const std::string& prefix, Layer& part) {
    for (const Parameter& of_part : part.parameters()) {
      const auto same = std::ranges::find(all, prefix + of_part.name, &Parameter::name);
      ASSERT_NE(same, all.end()) << of_part.name;
      EXPECT_TRUE(std::ranges::equal(same->gradient, of_part.gradient)) << same->name;
    }
  });
}

}  // namespace headlight::test
