// A transformer encoder layer on a batch of 32 sequences of 100 tokens: how a program uses one.
#include "gtest/gtest.h"
#include "headlight/layers.h"
#include "layers/twins.h"
#include "support/compare.h"

namespace headlight::test::encoder_layer_example_test {

TEST(EncoderLayerExample, FULL_TurnsABatchOfHiddenStatesIntoTheNext) {
  headlight::Engine engine;  // this machine's cores and best instruction set

  headlight::TransformerEncoderLayer layer({.width = 512, .heads = 8, .feed_forward_width = 2048});
  layer.initialize(42);  // or layer.load(weights)

  headlight::Tensor<float, 3> x({32, 100, 512});  // 32 sequences, 100 tokens each, 512 numbers a token
  for (std::int64_t n = 0; n < x.size(); ++n) x.data()[n] = static_cast<float>(n % 97) / 97 - 0.5f;
  headlight::Tensor<float, 3> y({32, 100, 512});

  layer.forward(engine, x, y);

  // Post-LN: every token leaves with mean 0 and variance 1.
  for (std::int64_t token = 0; token < 32 * 100; ++token) {
    double sum = 0;
    double squares = 0;
    for (std::int64_t e = 0; e < 512; ++e) {
      const double value = y.data()[token * 512 + e];
      sum += value;
      squares += value * value;
    }
    ASSERT_NEAR(sum / 512, 0.0, 1e-6);
    ASSERT_NEAR(squares / 512, 1.0, 1e-3);
  }

  // The float64 twin, on one sequence of the batch.
  headlight::Tensor<double, 3> truth({1, 100, 512});
  for (std::int64_t n = 0; n < truth.size(); ++n) truth.data()[n] = static_cast<double>(x.data()[17 * 100 * 512 + n]);
  reference::encoder_layer(
      TwinWeights<double>(layer.weights()).encoder_layer("", {.heads = 8, .activation = Activation::gelu}), truth);
  // A chain of 2048 products errs by some √2048 u of its norm, and an element's is 1/√512 of the row's: 2 u for each
  // product, of which two with such chains and two more stand one after another; and as much again for the rest.
  EXPECT_TRUE(within(View<float, 3>(y.data() + 17 * 100 * 512, {1, 100, 512}), truth.view(), 16 * kUnitRoundoff));
}

}  // namespace headlight::test::encoder_layer_example_test
