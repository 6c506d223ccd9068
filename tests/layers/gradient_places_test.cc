// Where gradients of inputs may not lie: every layer says so before anything is computed.
#include "gtest/gtest.h"
#include "headlight/layers.h"
#include "layers/gradients.h"
#include "layers/twins.h"
#include "support/compare.h"
#include "support/random.h"
#include "support/refusal.h"

namespace headlight::test::gradient_places_test {

// Self- and cross-attention with a merge that learns from the query, after a forward pass.
class AttentionPlaces : public testing::Test {
 protected:
  AttentionPlaces() {
    randomize(layer, random);
    layer.set_training(true);
    layer.forward(engine, query, key, value, out, saved, {});
  }

  std::string refused(View<const float, 3> out_gradient, const MultiHeadAttentionGradients& gradients) {
    return refusal([&] { layer.backward(engine, query, key, value, saved, out_gradient, gradients); });
  }
  [[nodiscard]] std::vector<float> parameter_gradients() { return gradients_of(layer.parameters()); }

  Engine engine{{.threads = 1}};
  Random random{1};
  MultiHeadAttention layer{{.width = 8, .heads = 2, .merge = Merge::gated_by_element}};
  Tensor<float, 3> query = random.normal_tensor<3>({2, 5, 8}), key = random.normal_tensor<3>({2, 5, 8}),
                   value = random.normal_tensor<3>({2, 5, 8}), weights = random.normal_tensor<3>({2, 5, 8});
  Tensor<float, 3> out{{2, 5, 8}}, first{{2, 5, 8}}, second{{2, 5, 8}}, third{{2, 5, 8}};
  SavedState saved;
};

TEST_F(AttentionPlaces, OverInputsAreRefused) {
  EXPECT_EQ(refused(weights, {.query = query}), "MultiHeadAttention: query's gradient overlaps query in memory");
  EXPECT_EQ(refused(weights, {.query = key}), "MultiHeadAttention: query's gradient overlaps key in memory");
  EXPECT_EQ(refused(weights, {.query = first, .key = value}),
            "MultiHeadAttention: key's gradient overlaps value in memory");
  EXPECT_EQ(refused(weights, {.value = query}), "MultiHeadAttention: value's gradient overlaps query in memory");
  // A part of it is enough.
  const View<float, 3> shifted(query.data() + 4, {2, 4, 8}, {40, 8, 1});
  EXPECT_NE(refused(weights, {.key = shifted}), "");
  for (const float gradient : parameter_gradients()) ASSERT_EQ(gradient, 0);  // nothing was computed
}

TEST_F(AttentionPlaces, OverEachOtherAreRefused) {
  EXPECT_EQ(refused(weights, {.query = first, .key = first}),
            "MultiHeadAttention: key's gradient overlaps query's gradient in memory");
  EXPECT_EQ(refused(weights, {.query = first, .key = second, .value = second}),
            "MultiHeadAttention: value's gradient overlaps key's gradient in memory");
  EXPECT_EQ(refused(weights, {.value = weights}),
            "MultiHeadAttention: value's gradient overlaps out_gradient in memory");
  EXPECT_EQ(refused(weights, {.query = first, .key = second, .residual = second}),
            "MultiHeadAttention: key's gradient overlaps residual in memory");
  Tensor<float, 3> longer({2, 6, 8});
  EXPECT_EQ(refused(weights, {.query = first, .residual = longer}),
            "MultiHeadAttention: residual has shape [2, 6, 8], expected [2, 5, 8] ([B, Lq, E])");
  const View<float, 3> one_row(first.data(), {2, 5, 8}, {8, 0, 1});
  EXPECT_NE(refused(weights, {.query = one_row}), "");
}

TEST_F(AttentionPlaces, OfABias) {
  Tensor<float, 4> bias({1, 2, 5, 5}), gradient({1, 2, 5, 5}), another({1, 2, 1, 5});
  EXPECT_EQ(refused(weights, {.bias = gradient}),
            "MultiHeadAttention: bias's gradient is asked for, expected none: forward() was given no bias");
  layer.forward(engine, query, key, value, out, saved, {}, {.bias = bias});
  EXPECT_EQ(refused(weights, {.bias = bias}), "MultiHeadAttention: bias's gradient overlaps options.bias in memory");
  EXPECT_EQ(
      refused(weights, {.bias = another}),
      "MultiHeadAttention: bias's gradient has shape [1, 2, 1, 5], expected [1, 2, 5, 5] (the shape of its input)");
  const View<float, 4> over_query(first.data(), {1, 2, 5, 5});
  EXPECT_EQ(refused(weights, {.query = first, .bias = over_query}),
            "MultiHeadAttention: bias's gradient overlaps query's gradient in memory");
  EXPECT_EQ(refused(weights, {.query = first, .bias = gradient}), "");
}

TEST_F(AttentionPlaces, TheQuerysMayBeThatOfOut) {
  layer.backward(engine, query, key, value, saved, weights,
                 {.query = first, .key = second, .value = third, .residual = weights});
  const std::vector<float> apart = parameter_gradients();
  layer.set_training(true);
  Tensor<float, 3> gradient({2, 5, 8}), key_gradient({2, 5, 8}), value_gradient({2, 5, 8});
  std::copy(weights.begin(), weights.end(), gradient.begin());
  layer.backward(engine, query, key, value, saved, gradient,
                 {.query = gradient, .key = key_gradient, .value = value_gradient, .residual = gradient});
  EXPECT_TRUE(same_bits(gradient, first));
  EXPECT_TRUE(same_bits(key_gradient, second));
  EXPECT_TRUE(same_bits(value_gradient, third));
  EXPECT_EQ(parameter_gradients(), apart);
}

TEST(GradientPlaces, OfLinear) {
  Engine engine({.threads = 1});
  Linear layer(4, 4);
  layer.set_training(true);
  Tensor<float, 2> x({3, 4}), gradient({3, 4}), residual({2, 4});
  EXPECT_EQ(refusal([&] { layer.backward(engine, x, gradient, x); }), "Linear: x_gradient overlaps x in memory");
  EXPECT_EQ(refusal([&] { layer.backward(engine, x, gradient, gradient); }),
            "Linear: x_gradient overlaps y_gradient in memory");
  EXPECT_EQ(refusal([&] { layer.backward(engine, x, gradient, residual); }),
            "Linear: x_gradient has shape [2, 4], expected [3, 4] (the shape of x)");
}

TEST(GradientPlaces, OfFeedForward) {
  Engine engine({.threads = 1});
  FeedForward layer({.width = 4});
  layer.set_training(true);
  Tensor<float, 3> x({1, 3, 4}), y({1, 3, 4}), gradient({2, 3, 4});
  SavedState saved;
  layer.forward(engine, x, y, saved, {});
  const View<float, 3> from(gradient.data(), {1, 3, 4}), shifted(gradient.data() + 4, {1, 3, 4});
  EXPECT_EQ(refusal([&] { layer.backward(engine, x, saved, from, x); }),
            "FeedForward: x_gradient overlaps x in memory");
  EXPECT_EQ(refusal([&] { layer.backward(engine, x, saved, from, shifted); }),
            "FeedForward: x_gradient overlaps y_gradient in memory");
  EXPECT_EQ(refusal([&] { layer.backward(engine, x, saved, from, y, shifted); }), "");
  EXPECT_EQ(refusal([&] { layer.backward(engine, x, saved, y, from, shifted); }),
            "FeedForward: x_gradient overlaps residual in memory");
  EXPECT_EQ(refusal([&] { layer.backward(engine, x, saved, from, from, from); }), "");
}

TEST(GradientPlaces, OfADecoderLayer) {
  Engine engine({.threads = 1});
  TransformerDecoderLayer layer({.width = 4, .heads = 2});
  layer.set_training(true);
  Tensor<float, 3> x({1, 3, 4}), memory({1, 3, 4}), y({1, 3, 4}), gradient({1, 3, 4}), another({1, 3, 4});
  SavedState saved;
  layer.forward(engine, x, memory, y, saved, {});
  const auto refused = [&](View<float, 3> x_gradient, View<float, 3> memory_gradient) {
    return refusal([&] { layer.backward(engine, x, memory, saved, gradient, x_gradient, memory_gradient); });
  };
  EXPECT_EQ(refused(memory, {}), "TransformerDecoderLayer: x_gradient overlaps memory in memory");
  EXPECT_EQ(refused(another, x), "TransformerDecoderLayer: memory_gradient overlaps x in memory");
  EXPECT_EQ(refused(another, gradient), "TransformerDecoderLayer: memory_gradient overlaps y_gradient in memory");
  EXPECT_EQ(refused(gradient, gradient), "TransformerDecoderLayer: memory_gradient overlaps y_gradient in memory");
  EXPECT_EQ(refused(gradient, another), "");
}

}  // namespace headlight::test::gradient_places_test
