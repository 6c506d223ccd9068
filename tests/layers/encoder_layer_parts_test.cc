// A TransformerEncoderLayer has the bits of its parts, each a layer of its own, both ways: one after another, over
// samples that lie together or apart.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers/transformer.h"
#include "layers/layer_parts.h"
#include "layers/twins.h"
#include "support/compare.h"
#include "support/isas.h"

namespace headlight::test::encoder_layer_parts_test {

using EncoderLayerPartsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(EncoderLayerPartsTest);

// Outside of training one thread goes through at least three pieces of them, the last of which is smaller.
constexpr std::int64_t kBatch = 4, kLength = 100;

struct PartsOfALayer {
  PartsOfALayer(const TransformerLayerOptions& options, const Weights& weights)
      : norm(options.norm),
        attention(attention_of(options)),
        feed_forward(feed_forward_of(options)),
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

TEST_P(EncoderLayerPartsTest, Forward) {
  Engine engine(options(1));
  Random random(1);
  for_every_layer([&](const TransformerLayerOptions& made) {
    for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::int8}) {
      TransformerEncoderLayer layer(made);
      randomize(layer, random);
      PartsOfALayer parts(made, layer.weights());
      layer.set_precision(type);
      parts.for_each([&](const char*, Layer& part) { part.set_precision(type); });
      for (const bool apart : {false, true}) {
        const auto samples = [&](bool lie_apart) { return Samples(kBatch, kLength, made.width, lie_apart); };
        Samples x = samples(apart), y = samples(apart), outputs = samples(apart), scaled = samples(!apart);
        for (float& number : x.memory) number = random.normal();
        Samples expected = samples(false), first = samples(false), heads = samples(false);
        Samples scaled_heads = samples(false);
        const View<const float, 3> from = x.view;
        const std::vector<std::int64_t> lengths = {kLength, 1, 33, 70}, silenced = {1};
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
        normalize_backward(engine, parts.norm2, inner, by, gradient);
        feed_forward.backward(engine, between, of_rows, gradient, gradient, gradient);
        normalize_backward(engine, parts.norm1, sum, gradient, gradient);
        attention.backward(engine, x, x, x, of_attention, gradient, {.query = expected_gradient, .residual = gradient});
      } else {
        normalize(engine, parts.norm1, x, inner);
        attention.forward(engine, inner, inner, inner, sum, of_attention, {}, {}, x);
        normalize(engine, parts.norm2, sum, between);
        feed_forward.forward(engine, between, expected, of_rows, {}, sum);
        feed_forward.backward(engine, between, of_rows, by, gradient);
        normalize_backward(engine, parts.norm2, sum, gradient, gradient, by);
        attention.backward(engine, inner, inner, inner, of_attention, gradient, {.query = expected_gradient});
        normalize_backward(engine, parts.norm1, x, expected_gradient, expected_gradient, gradient);
      }
      EXPECT_TRUE(same_bits(y, expected));
      EXPECT_TRUE(same_bits(x_gradient, expected_gradient));
      expect_gradients_of_parts(layer, [&](auto f) { parts.for_each(f); });
    }
  });
}

}  // namespace headlight::test::encoder_layer_parts_test
