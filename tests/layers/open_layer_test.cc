// A layer that trains, or whose parameters somebody holds, never computes with weights that were packed before.
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers.h"
#include "headlight/loss.h"
#include "headlight/optimizer.h"
#include "layers/twins.h"
#include "support/compare.h"
#include "support/random.h"

namespace headlight::test::open_layer_test {

// The rows of a layer that was given these weights and has packed none before.
template <class Made>
Tensor<float, 3> rows_with_weights_of(Engine& engine, const Layer& layer, Made fresh, View<const float, 3> x) {
  fresh.load(layer.weights());
  Tensor<float, 3> y(x.shape);
  fresh.forward(engine, x, y);
  return y;
}

// What may be done to a layer between two steps; its weights stay, or become others.
struct Change {
  std::string name;
  std::function<void(Layer&)> make;
};

std::vector<Change> changes() {
  return {{"load", [](Layer& layer) { layer.load(layer.weights()); }},
          {"initialize", [](Layer& layer) { layer.initialize(7); }},
          {"freeze", [](Layer& layer) { layer.freeze(); }}};
}

TEST(OpenLayer, TrainsOnAfterAnyChange) {
  Engine engine({.threads = 1});
  Random random(1);
  const auto x = random.normal_tensor<3>({2, 5, 16});
  const TransformerLayerOptions made = {.width = 16, .heads = 2, .dropout = 0};
  for (const Change& change : changes()) {
    TransformerEncoderLayer layer(made);
    randomize(layer, random);
    layer.set_training(true);
    Sgd optimizer(layer.parameters());
    change.make(layer);
    SavedState saved;
    Tensor<float, 3> y(x.shape()), x_gradient(x.shape());
    for (int step = 0; step < 3; ++step) {
      layer.forward(engine, x, y, saved, {});
      EXPECT_TRUE(same_bits(y, rows_with_weights_of(engine, layer, TransformerEncoderLayer(made), x)))
          << change.name << ", step " << step;
      layer.backward(engine, x, saved, y, x_gradient);
      ASSERT_TRUE(optimizer.step(engine, {.learning_rate = 0.1}).taken());
    }
    layer.set_training(false);
    layer.freeze();
    layer.forward(engine, x, y);
    EXPECT_TRUE(same_bits(y, rows_with_weights_of(engine, layer, TransformerEncoderLayer(made), x))) << change.name;
  }
}

// Whoever holds spans may write after a load() as before it.
TEST(OpenLayer, StaysOpenForWhoeverHoldsItsParameters) {
  Engine engine({.threads = 1});
  Random random(2);
  const auto x = random.normal_tensor<3>({1, 4, 8});
  for (const Change& change : changes()) {
    if (change.name == "freeze") continue;  // the caller's word that nobody will
    FeedForward layer({.width = 8});
    const std::vector<Parameter> parameters = layer.parameters();
    change.make(layer);
    Tensor<float, 3> y(x.shape());
    for (const float value : {0.5f, -2.0f}) {
      parameters.front().values.front() = value;
      layer.forward(engine, x, y);
      EXPECT_TRUE(same_bits(y, rows_with_weights_of(engine, layer, FeedForward({.width = 8}), x))) << change.name;
    }
  }
}

// docs/training.md's encoder with a checkpoint that is loaded once the optimiser is there: it must end as low.
TEST(OpenLayer, LearnsFromACheckpointThatIsLoadedLate) {
  const std::vector<std::int64_t> words = {3, 1, 4, 1, 5, 9, 2, 6}, places = {0, 1, 2, 3, 4, 5, 6, 7}, ends = {0, 8};
  const std::vector<std::int64_t> before = {0, 3, 1, 4, 1, 5, 9, 2};
  const EncoderInput input = {.ids = words, .positions = places, .offsets = ends};
  const EncoderOptions made = {.vocabulary = 16, .max_positions = 8, .width = 16, .heads = 2, .layers = 1};
  Encoder checkpoint(made);
  checkpoint.initialize(2);

  Engine engine({.threads = 1});
  Encoder encoder(made);
  encoder.initialize(1);
  encoder.set_training(true);
  AdamW optimizer(encoder.parameters());
  encoder.load(checkpoint.weights());
  SavedState saved;
  Tensor<float, 2> hidden({8, 16}), hidden_gradient({8, 16});
  double loss = 0;
  for (std::uint64_t step = 0; step <= 200; ++step) {
    optimizer.zero_gradients();
    encoder.forward(engine, input, hidden, saved, {.seed = 1, .step = step});
    loss = cross_entropy(engine, hidden, before, {.logits_gradient = hidden_gradient}).loss;
    encoder.backward(engine, input, saved, hidden_gradient);
    optimizer.step(engine, {.learning_rate = 0.01});
  }
  EXPECT_LT(loss, 0.1);
}

}  // namespace headlight::test::open_layer_test
