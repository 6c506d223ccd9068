// A TransformerEncoderLayer has the bits of its parts, each a layer of its own, both ways: one after another, over
// samples that lie together or apart.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers/transformer.h"
#include "layers/twins.h"
#include "support/compare.h"
#include "support/isas.h"

namespace headlight::test::encoder_layer_parts_test {

using EncoderLayerPartsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(EncoderLayerPartsTest);

constexpr std::int64_t kBatch = 3, kLength = 70;

// Samples of x [B, L, E], in memory of their own or each behind rows of others.
struct Samples {
  Samples(std::int64_t width, bool apart)
      : memory({kBatch, apart ? kLength + 2 : kLength, width}),
        view(memory.data(), {kBatch, kLength, width}, memory.view().strides) {}

  Tensor<float, 3> memory;
  View<float, 3> view;
};

// Weights of a part: those whose names begin so.
Weights part_of(const Weights& weights, const std::string& prefix) {
  Weights part;
  for (const auto& [name, weight] : weights) {
    if (name.starts_with(prefix)) part[name.substr(prefix.size())] = weight;
  }
  return part;
}

void normalize(Engine& engine, const LayerNorm& norm, View<const float, 3> x, View<float, 3> y) {
  for (std::int64_t b = 0; b < kBatch; ++b) {
    norm.forward(engine, View<const float, 2>(&x(b, 0, 0), {kLength, x.extent(2)}, {x.stride(1), 1}),
                 View<float, 2>(&y(b, 0, 0), {kLength, y.extent(2)}, {y.stride(1), 1}));
  }
}

// All rows of x as one matrix.
template <class T>
View<T, 2> rows(const View<T, 3>& x) {
  return {x.data, {kBatch * kLength, x.extent(2)}, {x.stride(1), 1}};
}

struct PartsOfALayer {
  PartsOfALayer(const TransformerLayerOptions& options, const Weights& weights)
      : norm(options.norm),
        attention({.width = options.width, .heads = options.heads, .bias = options.bias, .merge = options.merge}),
        feed_forward({.width = options.width,
                      .hidden_width = options.feed_forward_width,
                      .activation = options.activation,
                      .bias = options.bias}),
        norm1(options.width, options.layer_norm_epsilon, options.bias),
        norm2(options.width, options.layer_norm_epsilon, options.bias) {
    attention.load(part_of(weights, "self_attn."));
    feed_forward.load(weights, {.ignore_extra = true});
    norm1.load(part_of(weights, "norm1."));
    norm2.load(part_of(weights, "norm2."));
  }
  template <class Function>
  void for_each(Function f) {
    f("self_attn.", attention);
    f("", feed_forward);
    f("norm1.", norm1);
    f("norm2.", norm2);
  }

  Norm norm;
  MultiHeadAttention attention;
  FeedForward feed_forward;
  LayerNorm norm1, norm2;
};

constexpr Merge kMerges[] = {Merge::concatenate, Merge::weighted, Merge::weighted_by_input, Merge::gated_by_head};

template <class Check>
void for_every_layer(Check check) {
  for (const Merge merge : kMerges) {
    for (const Norm norm : {Norm::post, Norm::pre}) {
      const bool bias = merge != Merge::weighted;
      SCOPED_TRACE(testing::Message() << "merge " << static_cast<int>(merge) << ", norm " << static_cast<int>(norm));
      // Heads of an odd width, and a feed-forward part that goes through its rows in pieces.
      check(TransformerLayerOptions{.width = 21,
                                    .heads = 3,
                                    .feed_forward_width = merge == Merge::concatenate ? 12000 : 40,
                                    .norm = norm,
                                    .dropout = 0,
                                    .bias = bias,
                                    .merge = merge});
    }
  }
}

TEST_P(EncoderLayerPartsTest, Forward) {
  Engine engine(options(2));
  Random random(1);
  for_every_layer([&](const TransformerLayerOptions& made) {
    for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::int8}) {
      TransformerEncoderLayer layer(made);
      randomize(layer, random);
      PartsOfALayer parts(made, layer.weights());
      layer.set_precision(type);
      parts.for_each([&](const char*, Layer& part) { part.set_precision(type); });
      for (const bool apart : {false, true}) {
        Samples x(made.width, apart), y(made.width, apart), outputs(made.width, apart), scaled(made.width, !apart);
        x.memory = random.normal_tensor<3>(x.memory.shape());
        x.view.data = x.memory.data();
        Samples expected(made.width, false), first(made.width, false), heads(made.width, false);
        Samples scaled_heads(made.width, false);
        const View<const float, 3> from = x.view;
        const std::vector<std::int64_t> lengths = {kLength, 1, 33}, silenced = {1};
        const AttentionOptions attended = {.causal = Causal::top_left, .key_lengths = lengths};
        const HeadAccess access = {outputs.view, silenced, scaled.view};
        layer.forward(engine, from, y.view, attended, access);
        const HeadAccess expected_access = {heads.view, silenced, scaled_heads.view};
        if (made.norm == Norm::post) {
          parts.attention.forward(engine, from, from, from, first.view, attended, from, expected_access);
          normalize(engine, parts.norm1, first.view, first.view);
          parts.feed_forward.forward(engine, first.view, expected.view, first.view);
          normalize(engine, parts.norm2, expected.view, expected.view);
        } else {
          normalize(engine, parts.norm1, from, first.view);
          parts.attention.forward(engine, first.view, first.view, first.view, expected.view, attended, from,
                                  expected_access);
          normalize(engine, parts.norm2, expected.view, first.view);
          parts.feed_forward.forward(engine, first.view, expected.view, expected.view);
        }
        EXPECT_TRUE(same_bits(y.view, expected.view)) << apart;
        EXPECT_TRUE(same_bits(outputs.view, heads.view)) << apart;
        EXPECT_TRUE(same_bits(scaled.view, scaled_heads.view)) << apart;
        layer.forward(engine, from, x.view, attended, {.silenced = silenced});
        EXPECT_TRUE(same_bits(x.view, expected.view)) << apart << ", in place";
      }
    }
  });
}

// Of x that is one matrix: else weights have their gradients sample by sample.
TEST_P(EncoderLayerPartsTest, Backward) {
  Engine engine(options(2));
  Random random(2);
  for_every_layer([&](const TransformerLayerOptions& made) {
    for (const NumberType type : {NumberType::float32, NumberType::bfloat16}) {
      TransformerEncoderLayer layer(made);
      randomize(layer, random);
      PartsOfALayer parts(made, layer.weights());
      layer.set_training(true);
      parts.for_each([](const char*, Layer& part) { part.set_training(true); });
      const Tensor<float, 3> x = random.normal_tensor<3>({kBatch, kLength, made.width});
      const Tensor<float, 3> by = random.normal_tensor<3>(x.shape());
      Tensor<float, 3> y(x.shape()), x_gradient(x.shape()), expected(x.shape()), sum(x.shape()), between(x.shape());
      Tensor<float, 3> inner(x.shape()), gradient(x.shape()), expected_gradient(x.shape());
      SavedState saved(type), of_attention(type), of_rows(type);
      layer.forward(engine, x, y, saved, {});
      layer.backward(engine, x, saved, by, x_gradient);
      MultiHeadAttention& attention = parts.attention;
      FeedForward& feed_forward = parts.feed_forward;
      if (made.norm == Norm::post) {
        attention.forward(engine, x, x, x, sum, of_attention, {}, {}, x);
        normalize(engine, parts.norm1, sum, between);
        feed_forward.forward(engine, between, inner, of_rows, {}, between);
        normalize(engine, parts.norm2, inner, expected);
        parts.norm2.backward(engine, rows<const float>(inner), rows<const float>(by), rows<float>(gradient));
        feed_forward.backward(engine, between, of_rows, gradient, gradient, gradient);
        parts.norm1.backward(engine, rows<const float>(sum), rows<const float>(gradient), rows<float>(gradient));
        attention.backward(engine, x, x, x, of_attention, gradient, {.query = expected_gradient, .residual = gradient});
      } else {
        normalize(engine, parts.norm1, x, inner);
        attention.forward(engine, inner, inner, inner, sum, of_attention, {}, {}, x);
        normalize(engine, parts.norm2, sum, between);
        feed_forward.forward(engine, between, expected, of_rows, {}, sum);
        feed_forward.backward(engine, between, of_rows, by, gradient);
        parts.norm2.backward(engine, rows<const float>(sum), rows<const float>(gradient), rows<float>(gradient),
                             rows<const float>(by));
        attention.backward(engine, inner, inner, inner, of_attention, gradient, {.query = expected_gradient});
        parts.norm1.backward(engine, rows<const float>(x), rows<const float>(expected_gradient),
                             rows<float>(expected_gradient), rows<const float>(gradient));
      }
      EXPECT_TRUE(same_bits(y, expected));
      EXPECT_TRUE(same_bits(x_gradient, expected_gradient));
      const std::vector<Parameter> all = layer.parameters();
      parts.for_each([&](const std::string& prefix, Layer& part) {
        for (const Parameter& of_part : part.parameters()) {
          const auto same = std::ranges::find(all, prefix + of_part.name, &Parameter::name);
          ASSERT_NE(same, all.end()) << of_part.name;
          EXPECT_TRUE(std::ranges::equal(same->gradient, of_part.gradient)) << same->name;
        }
      });
    }
  });
}

}  // namespace headlight::test::encoder_layer_parts_test
