// A TransformerDecoderLayer has the bits of its parts, each a layer of its own, both ways: one after another, over a
// memory whose samples lie together or apart.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers/transformer.h"
#include "layers/layer_parts.h"
#include "layers/twins.h"
#include "support/compare.h"
#include "support/isas.h"

namespace headlight::test::decoder_layer_parts_test {

using DecoderLayerPartsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(DecoderLayerPartsTest);

// Outside of training one thread goes through at least three pieces of them, the last of which is smaller.
constexpr std::int64_t kBatch = 4, kLength = 100, kMemoryLength = 13;

struct PartsOfALayer {
  PartsOfALayer(const TransformerLayerOptions& options, const Weights& weights)
      : norm(options.norm),
        self(attention_of(options)),
        recall(attention_of(options)),
        feed_forward(feed_forward_of(options)),
        norm1(options.width, options.layer_norm_epsilon, options.bias),
        norm2(options.width, options.layer_norm_epsilon, options.bias),
        norm3(options.width, options.layer_norm_epsilon, options.bias) {
    self.load(part_of(weights, "self_attn."));
    recall.load(part_of(weights, "multihead_attn."));
    feed_forward.load(weights, {.ignore_extra = true});
    norm1.load(part_of(weights, "norm1."));
    norm2.load(part_of(weights, "norm2."));
    norm3.load(part_of(weights, "norm3."));
  }
  template <class Function>
  void for_each(Function f) {
    f("self_attn.", self);
    f("multihead_attn.", recall);
    f("", feed_forward);
    f("norm1.", norm1);
    f("norm2.", norm2);
    f("norm3.", norm3);
  }

  Norm norm;
  MultiHeadAttention self, recall;
  FeedForward feed_forward;
  LayerNorm norm1, norm2, norm3;
};

TEST_P(DecoderLayerPartsTest, Forward) {
  Engine engine(options(1));
  Random random(1);
  for_every_layer([&](const TransformerLayerOptions& made) {
    for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::int8}) {
      TransformerDecoderLayer layer(made);
      randomize(layer, random);
      PartsOfALayer parts(made, layer.weights());
      layer.set_precision(type);
      parts.for_each([&](const char*, Layer& part) { part.set_precision(type); });
      for (const bool apart : {false, true}) {
        Samples x(kBatch, kLength, made.width, apart), y(kBatch, kLength, made.width, apart);
        Samples seen(kBatch, kMemoryLength, made.width, !apart);
        for (float& number : x.memory) number = random.normal();
        for (float& number : seen.memory) number = random.normal();
        Tensor<float, 3> first(x.view.shape), second(x.view.shape), expected(x.view.shape);
        const View<const float, 3> from = x.view, memory = seen.view;
        const std::vector<std::int64_t> lengths = {kMemoryLength, 1, 0, 7};
        const AttentionOptions causal = {.causal = Causal::top_left}, recalled = {.key_lengths = lengths};
        layer.forward(engine, from, memory, y.view, causal, recalled);
        if (made.norm == Norm::post) {
          parts.self.forward(engine, from, from, from, first, causal, from);
          normalize(engine, parts.norm1, first, first);
          parts.recall.forward(engine, first, memory, memory, second, recalled, first);
          normalize(engine, parts.norm2, second, second);
          parts.feed_forward.forward(engine, second, expected, second);
          normalize(engine, parts.norm3, expected, expected);
        } else {
          normalize(engine, parts.norm1, from, first);
          parts.self.forward(engine, first, first, first, second, causal, from);
          normalize(engine, parts.norm2, second, first);
          parts.recall.forward(engine, first, memory, memory, expected, recalled, second);
          normalize(engine, parts.norm3, expected, first);
          parts.feed_forward.forward(engine, first, expected, expected);
        }
        EXPECT_TRUE(same_bits(y.view, expected.view())) << apart;
        layer.forward(engine, from, memory, x.view, causal, recalled);
        EXPECT_TRUE(same_bits(x.view, expected.view())) << apart << ", in place";
      }
    }
  });
}

// Of x that is one matrix: else weights have their gradients sample by sample, as they have of a memory.
TEST_P(DecoderLayerPartsTest, Backward) {
  Engine engine(options(2));
  Random random(2);
  for_every_layer([&](const TransformerLayerOptions& made) {
    for (const NumberType type : {NumberType::float32, NumberType::bfloat16}) {
      for (const bool apart : {false, true}) {
        const bool is_wanted = apart || made.norm == Norm::post;  // the gradient of the memory
        TransformerDecoderLayer layer(made);
        randomize(layer, random);
        PartsOfALayer parts(made, layer.weights());
        layer.set_training(true);
        parts.for_each([](const char*, Layer& part) { part.set_training(true); });
        const Tensor<float, 3> x = random.normal_tensor<3>({kBatch, kLength, made.width});
        const Tensor<float, 3> by = random.normal_tensor<3>(x.shape());
        Samples seen(kBatch, kMemoryLength, made.width, apart), to_memory(kBatch, kMemoryLength, made.width, apart);
        for (float& number : seen.memory) number = random.normal();
        for (float& number : to_memory.memory) number = random.normal();
        Samples expected_to_memory(kBatch, kMemoryLength, made.width, apart);
        std::ranges::copy(to_memory.memory, expected_to_memory.memory.begin());
        const View<const float, 3> memory = seen.view;
        Tensor<float, 3> y(x.shape()), x_gradient(x.shape());
        SavedState saved(type), of_self(type), of_recall(type), of_rows(type);
        layer.forward(engine, x, memory, y, saved, {});
        layer.backward(engine, x, memory, saved, by, x_gradient, is_wanted ? to_memory.view : View<float, 3>());

        Tensor<float, 3> sum1(x.shape()), sum2(x.shape()), sum3(x.shape()), in1(x.shape()), in2(x.shape());
        Tensor<float, 3> in3(x.shape()), expected(x.shape()), g(x.shape()), h(x.shape());
        const AttentionOptions causal = {.causal = Causal::top_left};
        const View<float, 3> memory_gradient = is_wanted ? expected_to_memory.view : View<float, 3>();
        if (made.norm == Norm::post) {
          parts.self.forward(engine, x, x, x, sum1, of_self, {}, causal, x);
          normalize(engine, parts.norm1, sum1, in2);
          parts.recall.forward(engine, in2, memory, memory, sum2, of_recall, {}, {}, in2);
          normalize(engine, parts.norm2, sum2, in3);
          parts.feed_forward.forward(engine, in3, sum3, of_rows, {}, in3);
          normalize(engine, parts.norm3, sum3, expected);
          normalize_backward(engine, parts.norm3, sum3, by, g);
          parts.feed_forward.backward(engine, in3, of_rows, g, g, g);
          normalize_backward(engine, parts.norm2, sum2, g, g);
          parts.recall.backward(engine, in2, memory, memory, of_recall, g,
                                {.query = h, .key = memory_gradient, .residual = g, .accumulate_key_and_value = true});
          normalize_backward(engine, parts.norm1, sum1, h, h);
          parts.self.backward(engine, x, x, x, of_self, h, {.query = g, .residual = h});
        } else {
          normalize(engine, parts.norm1, x, in1);
          parts.self.forward(engine, in1, in1, in1, sum1, of_self, {}, causal, x);
          normalize(engine, parts.norm2, sum1, in2);
          parts.recall.forward(engine, in2, memory, memory, sum2, of_recall, {}, {}, sum1);
          normalize(engine, parts.norm3, sum2, in3);
          parts.feed_forward.forward(engine, in3, expected, of_rows, {}, sum2);
          parts.feed_forward.backward(engine, in3, of_rows, by, g);
          normalize_backward(engine, parts.norm3, sum2, g, g, by);
          parts.recall.backward(engine, in2, memory, memory, of_recall, g,
                                {.query = h, .key = memory_gradient, .accumulate_key_and_value = true});
          normalize_backward(engine, parts.norm2, sum1, h, h, g);
          parts.self.backward(engine, in1, in1, in1, of_self, h, {.query = g});
          normalize_backward(engine, parts.norm1, x, g, g, h);
        }
        EXPECT_TRUE(same_bits(y, expected)) << apart;
        EXPECT_TRUE(same_bits(x_gradient, g)) << apart;
        EXPECT_TRUE(same_bits(to_memory.view, expected_to_memory.view)) << apart;
        expect_gradients_of_parts(layer, [&](auto f) { parts.for_each(f); });
      }
    }
  });
}

}  // namespace headlight::test::decoder_layer_parts_test
