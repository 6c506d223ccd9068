// What training may ask of heads: each term's gradient against differences of its twin, and what following it does.
#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/analysis/diversity.h"
#include "headlight/analysis/similarity.h"
#include "headlight/layers/encoder.h"
#include "headlight/layers/network.h"
#include "reference/heads.h"
#include "support/compare.h"
#include "support/gradient_check.h"
#include "support/head_case.h"
#include "support/isas.h"
#include "support/refusal.h"

namespace headlight::analysis::penalties_test {

using test::converted;
using test::gradient_agrees;
using test::Random;

using PenaltiesTest = test::EachIsa;
HEADLIGHT_ON_EVERY_ISA(PenaltiesTest);

constexpr test::GradientCheck kCheck = {.tolerance = 1e-5};

Tensor<double, 2> scaled(const Tensor<float, 2>& gradient, double scale) {
  Tensor<double, 2> result = converted<double>(gradient);
  for (double& value : result) value *= scale;
  return result;
}

TEST_P(PenaltiesTest, GoDownAlongTheirGradients) {
  Engine engine(options(2));
  Random random(1);
  for (const std::int64_t heads : {1, 2, 5}) {
    const Tensor<float, 2> weight = random.normal_tensor<2>({heads * 3, 13});
    Tensor<double, 2> twin = converted<double>(weight);
    Tensor<float, 2> flat(weight.shape()), spaces(weight.shape());
    const double flat_penalty = orthogonality_penalty(weight, heads, {flat, 0.5}).value();
    const double penalty = subspace_penalty(engine, weight, heads, {spaces, 0.5}).value();
    EXPECT_EQ(flat_penalty, orthogonality_penalty(weight, heads).value());
    EXPECT_NEAR(penalty, reference::subspace_penalty(twin, heads), 1e-5);
    EXPECT_TRUE(gradient_agrees(
        twin, scaled(flat, 2),
        [&] {
          return reference::orthogonality_penalty({twin.data(), {heads, 3 * 13}});
        },
        kCheck));
    EXPECT_TRUE(gradient_agrees(
        twin, scaled(spaces, 2), [&] { return reference::subspace_penalty(twin, heads); }, kCheck));
  }
}

TEST(Penalties, OfOutputsGoDownAlongTheirGradient) {
  Random random(2);
  const Tensor<float, 3> x = converted<float>(test::head_outputs(random, 9, 3, 5));
  Tensor<float, 3> gradient(x.shape());
  for (float& value : gradient) value = 1;  // it is added to
  const double disagreement = output_disagreement(x, {gradient, 2.0}).value();
  EXPECT_EQ(disagreement, output_disagreement(x).value());
  Tensor<double, 3> twin = converted<double>(x), expected = converted<double>(gradient);
  for (double& value : expected) value = (value - 1) / 2;
  // Of entries around 0.01 beside a 1 that float32 rounds at 6e-8.
  EXPECT_TRUE(gradient_agrees(twin, expected,
                              [&] { return reference::cosine_disagreement(test::heads_as_rows(twin).view()); },
                              {.tolerance = 1e-5 + 1e-4}));
}

TEST_P(PenaltiesTest, OfSimilarityGoDownAlongTheirGradient) {
  Engine engine(options(2));
  Random random(7);
  const Tensor<float, 3> heads = converted<float>(test::head_outputs(random, 11, 3, 4));
  Tensor<float, 2> gradient({11, 12});
  const View<const float, 2> x(heads.data(), {11, 12});
  const double penalty = similarity_penalty(engine, x, 3, {gradient, 0.5}).value();
  HeadCovariance covariance(3, 4);
  covariance.add(engine, x);
  double expected = 0;
  for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {1, 2}}) expected += 2 * covariance.cka(a, b).value();
  EXPECT_NEAR(penalty, expected, 1e-5);
  Tensor<double, 2> twin({11, 12});
  std::copy(heads.begin(), heads.end(), twin.begin());
  EXPECT_TRUE(gradient_agrees(
      twin, scaled(gradient, 2),
      [&] {
        Tensor<double, 2> columns({12, 11});
        for (std::int64_t e = 0; e < 12; ++e) {
          double mean = 0;
          for (std::int64_t n = 0; n < 11; ++n) mean += twin(n, e) / 11;
          for (std::int64_t n = 0; n < 11; ++n) columns(e, n) = twin(n, e) - mean;
        }
        return reference::subspace_penalty(columns, 3);
      },
      kCheck));
  Tensor<float, 2> same({4, 12});
  EXPECT_EQ(similarity_penalty(engine, same, 3, {}).why(), Undefined::constant);
  EXPECT_EQ(similarity_penalty(engine, View<const float, 2>(same.data(), {1, 12}), 3).why(), Undefined::too_few_rows);
  EXPECT_NE(test::refusal([&] { similarity_penalty(engine, same, 5); }), "");
}

TEST_P(PenaltiesTest, HaveNoGradientWhereTheyHaveNoValue) {
  Engine engine(options());
  const Tensor<float, 2> zero({6, 4});
  Tensor<float, 2> gradient({6, 4});
  EXPECT_EQ(subspace_penalty(engine, zero, 2, {gradient}).why(), Undefined::zero);
  EXPECT_EQ(orthogonality_penalty(zero, 2, {gradient}).why(), Undefined::zero);
  for (const float value : gradient) EXPECT_EQ(value, 0.0f);
  Tensor<float, 2> small({5, 4});
  EXPECT_EQ(test::refusal([&] { subspace_penalty(engine, zero, 2, {small}); }),
            "subspace_penalty: gradient has shape [5, 4], expected [6, 4] (the shape of what it is of)");
}

// No rotation of a head's rows among themselves changes what it spans.
TEST_P(PenaltiesTest, OfSubspacesDoNotSeeRotationsAndScales) {
  Engine engine(options());
  Random random(3);
  const Tensor<float, 2> weight = random.normal_tensor<2>({4, 9});
  Tensor<float, 2> turned({4, 9});
  for (std::int64_t d = 0; d < 9; ++d) {
    turned(0, d) = 2 * (0.6f * weight(0, d) + 0.8f * weight(1, d));
    turned(1, d) = 2 * (0.8f * weight(0, d) - 0.6f * weight(1, d));
    turned(2, d) = weight(3, d);
    turned(3, d) = -weight(2, d);
  }
  EXPECT_NEAR(subspace_penalty(engine, turned, 2).value(), subspace_penalty(engine, weight, 2).value(), 1e-6);
  for (std::int64_t d = 0; d < 9; ++d) {
    turned(2, d) = turned(1, d);
    turned(3, d) = turned(0, d);
  }
  EXPECT_NEAR(subspace_penalty(engine, turned, 2).value(), 2.0, 1e-6);
}

// The terms of a training step: what an encoder's gradients get beside the loss is what the penalties say.
TEST_P(PenaltiesTest, FindTheirParametersInAnEncoder) {
  Engine engine(options());
  Encoder encoder({.vocabulary = 5, .max_positions = 5, .width = 12, .heads = 3, .layers = 2, .orthogonal = false});
  encoder.initialize(4);
  encoder.set_training(true);
  const std::vector<Parameter> parameters = encoder.parameters();
  DiversityPenalty penalty(2, 3, {.subspaces = 0.3, .orthogonality = 0.7});
  penalty.add(engine, parameters);
  double expected = 0;
  for (const Parameter& parameter : parameters) {
    const bool projects = parameter.name.ends_with("in_proj_weight");
    for (std::size_t half = 0; half < 2 && projects; ++half) {
      const std::size_t first = half * 12 * 12;
      Tensor<double, 2> twin({12, 12});
      std::copy_n(parameter.values.begin() + static_cast<std::ptrdiff_t>(first), 144, twin.begin());
      const auto value = [&] {
        return (0.3 * reference::subspace_penalty(twin, 3) +
                0.7 * reference::orthogonality_penalty({twin.data(), {3, 48}})) /
               6 / 4;
      };
      expected += value();
      EXPECT_TRUE(gradient_agrees(twin.data(), parameter.gradient.data() + first, 144, value, kCheck));
    }
    const std::size_t rest = projects ? 288 : 0;
    for (std::size_t n = rest; n < parameter.gradient.size(); ++n) {
      ASSERT_EQ(parameter.gradient[n], 0.0f) << parameter.name;
    }
  }
  EXPECT_NEAR(penalty.take(), expected, 1e-6);
  EXPECT_EQ(penalty.take(), 0.0);
  encoder.set_training(false);
  EXPECT_NE(test::refusal([&] { penalty.add(engine, encoder.parameters()); }), "");
  EXPECT_NE(test::refusal([] { DiversityPenalty(2, 3, {.disagreement = -1}); }), "");
}

NetworkSpec network_of_groups() {
  BlockSpec block;
  block.attention = {.heads = 4, .key_value_heads = 2, .head_dim = 3};
  block.feed_forward.hidden_width = 5;
  return {.width = 10, .embedding = {.vocabulary = 5}, .blocks = {block, block}};
}

// Of four heads of queries and two of keys.
TEST_P(PenaltiesTest, FindTheirParametersInANetwork) {
  Engine engine(options());
  Network network(network_of_groups());
  network.initialize(4);
  network.set_training(true);
  const std::vector<Parameter> parameters = network.parameters();
  DiversityPenalty penalty(2, 4, {.subspaces = 0.3, .orthogonality = 0.7});
  penalty.add(engine, parameters);
  double expected = 0;
  for (const Parameter& parameter : parameters) {
    const bool is_query = parameter.name.ends_with("attention.query.weight");
    if (!is_query && !parameter.name.ends_with("attention.key.weight")) {
      for (const float number : parameter.gradient) ASSERT_EQ(number, 0.0f) << parameter.name;
      continue;
    }
    const std::int64_t heads = is_query ? 4 : 2, pairs = heads * heads - heads;
    Tensor<double, 2> twin({heads * 3, 10});
    std::copy(parameter.values.begin(), parameter.values.end(), twin.begin());
    const auto value = [&] {
      return (0.3 * reference::subspace_penalty(twin, heads) +
              0.7 * reference::orthogonality_penalty({twin.data(), {heads, 30}})) /
             static_cast<double>(pairs) / 4;
    };
    expected += value();
    EXPECT_TRUE(gradient_agrees(twin.data(), parameter.gradient.data(), twin.size(), value, kCheck)) << parameter.name;
  }
  EXPECT_NEAR(penalty.take(), expected, 1e-6);
}

// What a network shows on the way back are the heads that it had on the way there.
TEST_P(PenaltiesTest, LookAtTheHeadsOfANetwork) {
  Engine engine(options());
  Network network(network_of_groups());
  network.initialize(4);
  const std::vector<std::int64_t> ids = {3, 1, 4, 1, 0, 2}, offsets = {0, 6};
  const EncoderInput input = {.ids = ids, .offsets = offsets};
  Tensor<float, 2> hidden({6, 10}), gradient(hidden.shape());
  std::vector<Tensor<float, 2>> outputs(2);
  std::vector<LayerHeads> heads;
  for (std::int64_t block = 0; block < 2; ++block) {
    Tensor<float, 2>& of_block = outputs[static_cast<std::size_t>(block)] = Tensor<float, 2>({6, 12});
    heads.push_back({.layer = block, .outputs = of_block.view()});
  }
  network.forward(engine, input, hidden.view(), {}, heads);
  double expected = 0;
  for (const Tensor<float, 2>& of_block : outputs) {
    expected -= 0.5 / 2 * output_disagreement({of_block.data(), {6, 4, 3}}).value();
  }
  network.set_training(true);
  SavedState saved;
  network.forward(engine, input, hidden.view(), saved);
  DiversityPenalty penalty(2, 4, {.disagreement = 0.5});
  network.backward(engine, input, saved, gradient.view(), &penalty);
  EXPECT_NEAR(penalty.take(), expected, 1e-6);
  // The loss has no gradient: what there is comes of the penalty.
  for (const Parameter& parameter : network.parameters()) {
    if (!parameter.name.ends_with("attention.value.weight")) continue;
    EXPECT_TRUE(std::any_of(parameter.gradient.begin(), parameter.gradient.end(), [](float g) { return g != 0; }));
  }
}

TEST_P(PenaltiesTest, AskHeadsToDisagreeOnTheWayBack) {
  Engine engine(options());
  Random random(5);
  const Tensor<float, 3> outputs = random.normal_tensor<3>({2, 7, 12});
  Tensor<float, 3> gradient(outputs.shape());
  DiversityPenalty penalty(4, 3, {.disagreement = 0.5});
  penalty.visit(engine, 0, outputs, gradient);
  double expected = 0;
  for (std::int64_t b = 0; b < 2; ++b) {
    Tensor<float, 3> one({7, 3, 4});
    const double value = output_disagreement({&outputs(b, 0, 0), {7, 3, 4}}, {one, -0.5 / 4 / 2}).value();
    expected -= 0.5 / 4 / 2 * value;
    EXPECT_TRUE(test::same_bits(View<const float, 3>(&gradient(b, 0, 0), {7, 3, 4}), one.view()));
  }
  EXPECT_NEAR(penalty.take(), expected, 1e-12);
}

TEST_P(PenaltiesTest, AskHeadsForLessCkaOnTheWayBack) {
  Engine engine(options());
  Random random(10);
  const Tensor<float, 3> outputs = random.normal_tensor<3>({2, 9, 12});
  Tensor<float, 3> gradient(outputs.shape());
  DiversityPenalty penalty(4, 3, {.similarity = 0.5});
  penalty.visit(engine, 1, outputs, gradient);
  // The mean over two texts and four layers of the mean over six ordered pairs.
  constexpr double kShare = 0.5 / 2 / 4 / 6;
  double expected = 0;
  for (std::int64_t b = 0; b < 2; ++b) {
    Tensor<double, 2> twin({9, 12});
    std::copy_n(&outputs(b, 0, 0), 9 * 12, twin.begin());
    const auto value = [&] { return kShare * reference::similarity_penalty(twin.view(), 3); };
    expected += value();
    EXPECT_TRUE(gradient_agrees(twin.data(), &gradient(b, 0, 0), 9 * 12, value, kCheck));
  }
  EXPECT_NEAR(penalty.take(), expected, 1e-6);
  // Nothing to say of one head, nor of heads that give the same for every word.
  DiversityPenalty alone(4, 1, {.similarity = 0.5});
  alone.visit(engine, 0, outputs, gradient);
  EXPECT_EQ(alone.take(), 0.0);
  Tensor<float, 3> none(outputs.shape());
  penalty.visit(engine, 0, Tensor<float, 3>(outputs.shape()), none);
  EXPECT_EQ(penalty.take(), 0.0);
  for (const float value : none) EXPECT_EQ(value, 0.0f);
}

// Heads whose W_Q and W_K begin at right angles, and heads that are led there.
TEST_P(PenaltiesTest, PartHeads) {
  Engine engine(options());
  const auto overlap = [&](const View<const float, 2>& weight) {
    return subspace_overlaps(engine, weight, 4)[1].value();
  };
  MultiHeadAttention straight({.width = 16, .heads = 4, .orthogonal = true});
  straight.initialize(6);
  for (const std::int64_t half : {0, 1}) {
    const View<const float, 2> weight(straight.weights().at("in_proj_weight").values.data() + half * 256, {16, 16});
    EXPECT_LT(overlap(weight), 1e-12);
    EXPECT_NEAR(subspace_penalty(engine, weight, 4).value(), 0.0, 1e-9);
  }
  MultiHeadAttention led({.width = 16, .heads = 4});
  led.initialize(6);
  led.set_training(true);
  const std::vector<Parameter> parameters = led.parameters();
  DiversityPenalty penalty(1, 4, {.subspaces = 1});
  double before = 0, after = 0;
  for (int step = 0; step < 200; ++step) {
    zero_gradients(parameters);
    penalty.add(engine, parameters);
    after = penalty.take();
    if (step == 0) before = after;
    for (const Parameter& parameter : parameters) {
      for (std::size_t n = 0; n < parameter.values.size(); ++n) parameter.values[n] -= 2 * parameter.gradient[n];
    }
  }
  EXPECT_LT(after, 0.1 * before);
}

}  // namespace headlight::analysis::penalties_test
