// Layers by themselves: whatever is kept between forward and backward, and on however many threads, outputs and
// gradients have the same bits; unfused, which adds up in another order, agrees.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "baseline/attention_unfused.h"
#include "layers/gradients.h"
#include "layers/training_fixture.h"
#include "support/compare.h"
#include "support/isas.h"

namespace headlight::test::training_checkpoints_test {

using TrainingCheckpointsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(TrainingCheckpointsTest);

constexpr std::int64_t kBatch = 2, kLength = 70, kMemory = 45, kWidth = 48;
constexpr TrainingStep kStep = {.seed = 5, .step = 17, .layer = 1, .layers = 3};

// Inputs of a layer, and the gradient of its output.
struct Given {
  explicit Given(std::uint64_t seed)
      : random(seed),
        x(random.normal_tensor<3>({kBatch, kLength, kWidth})),
        memory(random.normal_tensor<3>({kBatch, kMemory, kWidth})),
        weights(random.normal_tensor<3>(x.shape())) {}
  Random random;
  Tensor<float, 3> x, memory, weights;
};

// The numbers of all tensors, one behind another.
template <class... Tensors>
std::vector<float> joined(const Tensors&... tensors) {
  std::vector<float> all;
  (all.insert(all.end(), tensors.begin(), tensors.end()), ...);
  return all;
}

// A pass forward and backward: output, and gradients of the inputs.
using Pass = std::function<std::vector<float>(Engine& engine, SavedState& saved)>;

// The same with the gradients of the parameters behind, which begin at zero.
Tensor<float, 1> numbers_of(Layer& layer, const Pass& pass, Engine& engine, SavedState& saved) {
  zero_gradients(layer.parameters());
  std::vector<float> all = pass(engine, saved);
  const std::vector<float> gradients = gradients_of(layer.parameters());
  all.insert(all.end(), gradients.begin(), gradients.end());
  Tensor<float, 1> numbers({static_cast<std::int64_t>(all.size())});
  std::copy(all.begin(), all.end(), numbers.begin());
  return numbers;
}

void check(const EngineOptions& made, Layer& layer, Random& random, const Pass& pass) {
  randomize(layer, random);
  layer.set_training(true);
  const auto engine_of = [&](int threads) {
    EngineOptions options = made;
    options.threads = threads;
    return options;
  };
  Engine one(engine_of(1));
  SavedState all;
  const Tensor<float, 1> truth = numbers_of(layer, pass, one, all);
  for (const int threads : {1, 3}) {
    Engine engine(engine_of(threads));
    for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::layer_input, Checkpoint::every_k_layers}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, checkpoint " << static_cast<int>(checkpoint));
      SavedState saved(checkpoint);
      EXPECT_TRUE(same_bits(numbers_of(layer, pass, engine, saved).view(), truth.view()));
      if (checkpoint != Checkpoint::keep_linear) {
        EXPECT_EQ(saved.bytes(), 0u);  // the input is in the caller's hands
      }
    }
    SavedState unfused(Checkpoint::keep_linear, 0, baseline::unfused_attention());
    EXPECT_TRUE(within(numbers_of(layer, pass, engine, unfused).view(), truth.view(), 1e-5));
  }
}

TEST_P(TrainingCheckpointsTest, MultiHeadAttention) {
  Given given(1);
  for (const Merge merge : {Merge::concatenate, Merge::weighted_by_input}) {
    for (const bool crosses : {false, true}) {
      SCOPED_TRACE(std::string(name(merge)) + (crosses ? ", crossing" : ""));
      MultiHeadAttention layer({.width = kWidth, .heads = 4, .key_value_heads = 2, .dropout = 0.1f, .merge = merge});
      check(options(), layer, given.random, [&](Engine& engine, SavedState& saved) {
        const View<const float, 3> key = crosses ? given.memory.view() : given.x.view();
        Tensor<float, 3> y(given.x.shape()), x_gradient(given.x.shape()), memory_gradient(given.memory.shape());
        layer.forward(engine, given.x, key, key, y, saved, kStep, {.window = {30, 10}});
        MultiHeadAttentionGradients gradients = {.query = x_gradient};
        if (crosses) gradients.key = memory_gradient;
        layer.backward(engine, given.x, key, key, saved, given.weights, gradients);
        return joined(y, x_gradient, memory_gradient);
      });
    }
  }
}

TEST_P(TrainingCheckpointsTest, FeedForward) {
  Given given(2);
  FeedForward layer({.width = kWidth, .hidden_width = 100, .activation = Activation::gelu, .dropout = 0.1f});
  check(options(), layer, given.random, [&](Engine& engine, SavedState& saved) {
    Tensor<float, 3> y(given.x.shape()), x_gradient(given.x.shape());
    layer.forward(engine, given.x, y, saved, kStep);
    layer.backward(engine, given.x, saved, given.weights, x_gradient);
    return joined(y, x_gradient);
  });
}

TransformerLayerOptions layer_options(Norm norm) {
  return {.width = kWidth, .heads = 4, .feed_forward_width = 100, .norm = norm, .dropout = 0.1f};
}

TEST_P(TrainingCheckpointsTest, EncoderLayer) {
  Given given(3);
  for (const Norm norm : {Norm::post, Norm::pre}) {
    SCOPED_TRACE(norm == Norm::pre ? "pre" : "post");
    TransformerEncoderLayer layer(layer_options(norm));
    check(options(), layer, given.random, [&](Engine& engine, SavedState& saved) {
      Tensor<float, 3> y(given.x.shape()), x_gradient(given.x.shape());
      layer.forward(engine, given.x, y, saved, kStep, {.causal = Causal::top_left});
      layer.backward(engine, given.x, saved, given.weights, x_gradient);
      return joined(y, x_gradient);
    });
  }
}

TEST_P(TrainingCheckpointsTest, DecoderLayer) {
  Given given(4);
  for (const Norm norm : {Norm::post, Norm::pre}) {
    SCOPED_TRACE(norm == Norm::pre ? "pre" : "post");
    TransformerDecoderLayer layer(layer_options(norm));
    check(options(), layer, given.random, [&](Engine& engine, SavedState& saved) {
      Tensor<float, 3> y(given.x.shape()), x_gradient(given.x.shape()), memory_gradient(given.memory.shape());
      layer.forward(engine, given.x, given.memory, y, saved, kStep);
      layer.backward(engine, given.x, given.memory, saved, given.weights, x_gradient, memory_gradient);
      return joined(y, x_gradient, memory_gradient);
    });
  }
}

}  // namespace headlight::test::training_checkpoints_test
