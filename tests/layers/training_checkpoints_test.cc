// Layers by themselves: whatever is kept between forward and backward, and on however many threads, outputs and
// gradients have the same bits; unfused, which adds up in another order, agrees.
#include <functional>
#include <string>
#include <vector>

#include "layers/training_fixture.h"
#include "support/compare.h"
#include "support/isas.h"

namespace headlight::test {
namespace {

using TrainingCheckpointsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(TrainingCheckpointsTest);

constexpr std::int64_t kBatch = 2, kLength = 70, kMemory = 45, kWidth = 48;
constexpr TrainingStep kStep = {.seed = 5, .step = 17, .layer = 1, .layers = 3};

// The numbers of all tensors, one behind another.
struct Numbers {
  void add(const Tensor<float, 3>& tensor) { all.insert(all.end(), tensor.begin(), tensor.end()); }
  void add(Layer& layer) {
    for (const Parameter& parameter : layer.parameters()) {
      all.insert(all.end(), parameter.gradient.begin(), parameter.gradient.end());
    }
  }
  [[nodiscard]] View<const float, 1> view() const { return {all.data(), {static_cast<std::int64_t>(all.size())}}; }
  std::vector<float> all;
};

// A pass forward and backward, from gradients of zero: output, gradients of the inputs, gradients of the parameters.
using Pass = std::function<Numbers(Engine& engine, SavedState& saved)>;

void check(const EngineOptions& made, const Pass& pass) {
  const auto engine_of = [&](int threads) {
    EngineOptions options = made;
    options.threads = threads;
    return options;
  };
  Engine one(engine_of(1));
  SavedState all;
  const Numbers truth = pass(one, all);
  for (const int threads : {1, 3}) {
    Engine engine(engine_of(threads));
    for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::layer_input, Checkpoint::every_k_layers}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, checkpoint " << static_cast<int>(checkpoint));
      SavedState saved(checkpoint);
      EXPECT_TRUE(same_bits(pass(engine, saved).view(), truth.view()));
      if (checkpoint != Checkpoint::keep_linear) {
        EXPECT_EQ(saved.bytes(), 0u);  // the input is in the caller's hands
      }
    }
    SavedState unfused(Checkpoint::unfused);
    EXPECT_TRUE(within(pass(engine, unfused).view(), truth.view(), 1e-5));
  }
}

TEST_P(TrainingCheckpointsTest, MultiHeadAttention) {
  Random random(1);
  const auto x = random.normal_tensor<3>({kBatch, kLength, kWidth});
  const auto memory = random.normal_tensor<3>({kBatch, kMemory, kWidth});
  const auto weights = random.normal_tensor<3>(x.shape());
  for (const Merge merge : {Merge::concatenate, Merge::weighted_by_input}) {
    for (const bool crosses : {false, true}) {
      SCOPED_TRACE(std::string(name(merge)) + (crosses ? ", crossing" : ""));
      MultiHeadAttention layer({.width = kWidth, .heads = 4, .key_value_heads = 2, .dropout = 0.1f, .merge = merge});
      randomize(layer, random);
      layer.set_training(true);
      check(options(), [&](Engine& engine, SavedState& saved) {
        zero_gradients(layer.parameters());
        const View<const float, 3> key = crosses ? memory.view() : x.view();
        Tensor<float, 3> y(x.shape()), x_gradient(x.shape()), memory_gradient(memory.shape());
        layer.forward(engine, x, key, key, y, saved, kStep, {.window = {30, 10}});
        MultiHeadAttentionGradients gradients = {.query = x_gradient};
        if (crosses) gradients.key = memory_gradient;
        layer.backward(engine, x, key, key, saved, weights, gradients);
        Numbers numbers;
        numbers.add(y);
        numbers.add(x_gradient);
        numbers.add(memory_gradient);
        numbers.add(layer);
        return numbers;
      });
    }
  }
}

TEST_P(TrainingCheckpointsTest, FeedForward) {
  Random random(2);
  FeedForward layer({.width = kWidth, .hidden_width = 100, .activation = Activation::gelu, .dropout = 0.1f});
  randomize(layer, random);
  layer.set_training(true);
  const auto x = random.normal_tensor<3>({kBatch, kLength, kWidth});
  const auto weights = random.normal_tensor<3>(x.shape());
  check(options(), [&](Engine& engine, SavedState& saved) {
    zero_gradients(layer.parameters());
    Tensor<float, 3> y(x.shape()), x_gradient(x.shape());
    layer.forward(engine, x, y, saved, kStep);
    layer.backward(engine, x, saved, weights, x_gradient);
    Numbers numbers;
    numbers.add(y);
    numbers.add(x_gradient);
    numbers.add(layer);
    return numbers;
  });
}

TEST_P(TrainingCheckpointsTest, EncoderLayer) {
  Random random(3);
  const auto x = random.normal_tensor<3>({kBatch, kLength, kWidth});
  const auto weights = random.normal_tensor<3>(x.shape());
  for (const Norm norm : {Norm::post, Norm::pre}) {
    SCOPED_TRACE(norm == Norm::pre ? "pre" : "post");
    TransformerEncoderLayer layer(
        {.width = kWidth, .heads = 4, .feed_forward_width = 100, .norm = norm, .dropout = 0.1f});
    randomize(layer, random);
    layer.set_training(true);
    check(options(), [&](Engine& engine, SavedState& saved) {
      zero_gradients(layer.parameters());
      Tensor<float, 3> y(x.shape()), x_gradient(x.shape());
      layer.forward(engine, x, y, saved, kStep, {.causal = Causal::top_left});
      layer.backward(engine, x, saved, weights, x_gradient);
      Numbers numbers;
      numbers.add(y);
      numbers.add(x_gradient);
      numbers.add(layer);
      return numbers;
    });
  }
}

TEST_P(TrainingCheckpointsTest, DecoderLayer) {
  Random random(4);
  const auto x = random.normal_tensor<3>({kBatch, kLength, kWidth});
  const auto memory = random.normal_tensor<3>({kBatch, kMemory, kWidth});
  const auto weights = random.normal_tensor<3>(x.shape());
  for (const Norm norm : {Norm::post, Norm::pre}) {
    SCOPED_TRACE(norm == Norm::pre ? "pre" : "post");
    TransformerDecoderLayer layer(
        {.width = kWidth, .heads = 4, .feed_forward_width = 100, .norm = norm, .dropout = 0.1f});
    randomize(layer, random);
    layer.set_training(true);
    check(options(), [&](Engine& engine, SavedState& saved) {
      zero_gradients(layer.parameters());
      Tensor<float, 3> y(x.shape()), x_gradient(x.shape()), memory_gradient(memory.shape());
      layer.forward(engine, x, memory, y, saved, kStep);
      layer.backward(engine, x, memory, saved, weights, x_gradient, memory_gradient);
      Numbers numbers;
      numbers.add(y);
      numbers.add(x_gradient);
      numbers.add(memory_gradient);
      numbers.add(layer);
      return numbers;
    });
  }
}

}  // namespace
}  // namespace headlight::test
