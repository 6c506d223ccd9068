// The stack of headlight study depth: with residual connections it is the engine's own layer.
#include "tools/headlight/studies/depth_stack.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/random.h"

namespace headlight::test::depth_stack_test {

using program::DepthLayer;
using program::DepthOptions;
using program::DepthStack;

Tensor<float, 3> random_states(Random& random, const DepthOptions& options) {
  Tensor<float, 3> states({options.sequences, options.length, options.width});
  for (float& value : states) value = random.normal();
  return states;
}

TEST(DepthStack, ItsLayerIsTheEngines) {
  Engine engine;
  for (const Norm norm : {Norm::pre, Norm::post}) {
    const DepthOptions options{.norm = norm, .width = 24, .sequences = 3, .length = 5};
    DepthLayer ours(options, 0);
    TransformerEncoderLayer theirs({.width = 24, .heads = 4, .norm = norm, .dropout = 0});
    theirs.set_training(true);
    const std::vector<Parameter> from = ours.parameters(), to = theirs.parameters();
    ASSERT_EQ(from.size(), to.size());
    for (std::size_t n = 0; n < from.size(); ++n) {
      ASSERT_EQ(from[n].shape, to[n].shape);
      std::copy(from[n].values.begin(), from[n].values.end(), to[n].values.begin());
    }
    Random random(7);
    const Tensor<float, 3> x = random_states(random, options);
    Tensor<float, 3> gradient = random_states(random, options), x_gradient = random_states(random, options);
    Tensor<float, 3> y = random_states(random, options), expected = random_states(random, options);
    SavedState saved;
    ours.forward(engine, x, y);
    theirs.forward(engine, x, expected, saved, {});
    EXPECT_TRUE(std::equal(y.begin(), y.end(), expected.begin()));
    theirs.backward(engine, x, saved, gradient, x_gradient);
    ours.backward(engine, x, gradient);
    EXPECT_TRUE(std::equal(gradient.begin(), gradient.end(), x_gradient.begin()));
    for (std::size_t n = 0; n < from.size(); ++n) {
      EXPECT_TRUE(std::equal(from[n].gradient.begin(), from[n].gradient.end(), to[n].gradient.begin())) << to[n].name;
    }
  }
}

// Along its gradient the loss changes as the gradient says: with every option, whole stack and all parameters.
TEST(DepthStack, GradientsPredictTheLoss) {
  Engine engine;
  for (const Norm norm : {Norm::pre, Norm::post}) {
    for (const bool residual : {true, false}) {
      DepthStack stack({.depth = 2, .norm = norm, .residual = residual, .width = 16, .sequences = 4, .length = 6});
      const auto move = [&](double distance) {
        for (const Parameter& parameter : stack.parameters()) {
          for (std::size_t n = 0; n < parameter.values.size(); ++n) {
            parameter.values[n] += static_cast<float>(distance) * parameter.gradient[n];
          }
        }
      };
      stack.learn_from(engine, 3);
      double squares = 0;
      for (const Parameter& parameter : stack.parameters()) {
        for (const float value : parameter.gradient) squares += static_cast<double>(value) * static_cast<double>(value);
      }
      const double distance = 0.01 / squares;  // to a change of the loss by 0.01
      std::vector<std::vector<float>> gradients;
      for (const Parameter& parameter : stack.parameters()) {
        gradients.emplace_back(parameter.gradient.begin(), parameter.gradient.end());
      }
      move(distance);
      const double above = stack.learn_from(engine, 3);
      for (std::size_t n = 0; n < gradients.size(); ++n) {
        std::copy(gradients[n].begin(), gradients[n].end(), stack.parameters()[n].gradient.begin());
      }
      move(-2 * distance);
      const double below = stack.learn_from(engine, 3);
      EXPECT_NEAR((above - below) / (2 * distance), squares, 0.01 * squares);
    }
  }
}

TEST(DepthStack, NormsAreThoseOfEachLayersParameters) {
  Engine engine;
  DepthStack stack({.depth = 3, .width = 16, .sequences = 2, .length = 4});
  stack.learn_from(engine, 0);
  const std::vector<double> norms = stack.gradient_norms();
  ASSERT_EQ(norms.size(), 3u);
  double sum = 0;
  for (const Parameter& parameter : stack.parameters()) {
    if (parameter.name.find("embeddings") != std::string::npos) continue;
    for (const float value : parameter.gradient) sum += static_cast<double>(value) * static_cast<double>(value);
  }
  double layers = 0;
  for (const double norm : norms) layers += norm * norm;
  EXPECT_GT(layers, 0);
  EXPECT_LT(layers, sum) << "the last normalisation and the logits have gradients too";
}

TEST(DepthStack, TheSameBitsForAnyNumberOfThreads) {
  std::vector<std::vector<double>> norms;
  for (const int threads : {1, 3}) {
    Engine engine({.threads = threads});
    DepthStack stack({.depth = 2, .width = 16, .sequences = 4, .length = 6});
    stack.learn_from(engine, 0);
    norms.push_back(stack.gradient_norms());
  }
  EXPECT_EQ(norms[0], norms[1]);
}

}  // namespace headlight::test::depth_stack_test
