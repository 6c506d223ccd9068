// Gradients of layers against central differences of their float64 twins with every option that says who sees whom:
// lengths, masks, biases, chunks, windows, packed sequences; and of a whole encoder, the dropout of its embeddings
// included.
#include <string>
#include <vector>

#include "layers/encoder_twin.h"
#include "layers/feed_forward_rows.h"
#include "layers/training_fixture.h"
#include "support/compare.h"
#include "support/isas.h"

namespace headlight::test::training_options_test {

using TrainingOptionsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(TrainingOptionsTest);

// x [batch, length, E] looks at itself, and at a memory [batch, kMemory, E].
constexpr std::int64_t kMemory = 7;
struct Given {
  std::string name;
  std::int64_t batch;
  std::int64_t length;
  AttentionOptions self;
  AttentionOptions cross;
};

class EveryGiven {
 public:
  EveryGiven() {
    Random random(9);
    for (Tensor<std::uint8_t, 4>* mask : {&mask_, &memory_mask_}) {
      for (std::uint8_t& entry : *mask) entry = random.once_in(3) ? 0 : 1;
    }
    for (Tensor<float, 4>* bias : {&bias_, &memory_bias_}) {
      for (float& entry : *bias) entry = random.uniform();
    }
    const AttentionOptions lengths = {.query_lengths = lengths_, .key_lengths = lengths_};
    const AttentionOptions memory_lengths = {.query_lengths = lengths_, .key_lengths = memory_lengths_};
    AttentionOptions packed, packed_memory;
    packed.causal = Causal::bottom_right;
    packed.query_offsets = packed_memory.query_offsets = offsets_;
    packed_memory.key_offsets = memory_offsets_;
    all_ = {{"lengths", 2, 6, lengths, memory_lengths},
            {"mask",
             2,
             6,
             {.mask = BooleanMask{mask_.view(), MaskMeans::attend}},
             {.mask = BooleanMask{memory_mask_.view(), MaskMeans::ignore}}},
            {"chunk", 2, 6, {.chunk = 4}, {.chunk = 3}},
            {"window", 2, 6, {.causal = Causal::top_left, .window = {2, -1}}, {.window = {1, 2}}},
            {"bias", 2, 6, {.bias = bias_.view()}, {.bias = memory_bias_.view()}},
            {"packed sequences", 1, 9, packed, packed_memory}};
  }
  EveryGiven(const EveryGiven&) = delete;
  EveryGiven& operator=(const EveryGiven&) = delete;

  [[nodiscard]] const std::vector<Given>& all() const { return all_; }

 private:
  std::vector<std::int64_t> lengths_{6, 3}, memory_lengths_{4, 7}, offsets_{0, 3, 4, 9}, memory_offsets_{0, 2, 5, 7};
  Tensor<std::uint8_t, 4> mask_{{2, 2, 6, 6}}, memory_mask_{{2, 1, 6, kMemory}};
  Tensor<float, 4> bias_{{2, 2, 6, 6}}, memory_bias_{{1, 2, 6, kMemory}};
  std::vector<Given> all_;
};

TEST_P(TrainingOptionsTest, MultiHeadAttention) {
  Engine engine(options());
  Random random(1);
  const EveryGiven every;
  for (const Given& given : every.all()) {
    for (const float dropout : {0.0f, 0.3f}) {
      SCOPED_TRACE(given.name + ", dropout " + std::to_string(dropout));
      MultiHeadAttention layer({.width = 8, .heads = 2, .dropout = dropout});
      randomize(layer, random);
      layer.set_training(true);
      const auto x = random.normal_tensor<3>({given.batch, given.length, 8});
      const auto weights = random.normal_tensor<3>(x.shape());
      const TrainingStep step = {.seed = random.next(), .step = 2};
      Tensor<float, 3> y(x.shape()), x_gradient(x.shape());
      SavedState saved;
      layer.forward(engine, x, x, x, y, saved, step, given.self);
      layer.backward(engine, x, x, x, saved, weights, {.query = x_gradient});

      TwinWeights<double> twin(layer.weights());
      Tensor<double, 3> twin_x = converted<double>(x);
      const Tensor<double, 3> twin_weights = converted<double>(weights);
      AttentionOptions dropping = given.self;
      dropping.dropout = step.dropout(dropout, 0);
      const auto loss = [&] {
        Tensor<double, 3> out(x.shape());
        reference::multi_head_attention<double>(twin.attention("", 2, 2), twin_x, twin_x, twin_x, out, dropping);
        return weighted_sum(out, twin_weights);
      };
      EXPECT_TRUE(gradient_agrees(twin_x, x_gradient, loss, kLayerCheck));
      expect_parameter_gradients(layer, twin, loss);
    }
  }
}

TransformerLayerOptions layer_options(Norm norm) {
  return {.width = 8, .heads = 2, .feed_forward_width = 12, .norm = norm, .dropout = 0.2f};
}

TEST_P(TrainingOptionsTest, EncoderLayer) {
  Engine engine(options());
  Random random(2);
  const EveryGiven every;
  for (const Given& given : every.all()) {
    for (const Norm norm : {Norm::post, Norm::pre}) {
      SCOPED_TRACE(given.name + (norm == Norm::pre ? ", pre" : ", post"));
      expect_encoder_layer_gradients(engine, random, layer_options(norm), {given.batch, given.length}, given.self);
    }
  }
}

TEST_P(TrainingOptionsTest, DecoderLayer) {
  Engine engine(options());
  Random random(3);
  const EveryGiven every;
  for (const Given& given : every.all()) {
    SCOPED_TRACE(given.name);
    expect_decoder_layer_gradients(engine, random, layer_options(Norm::pre), {given.batch, given.length, kMemory},
                                   given.self, given.cross);
  }
}

TEST_P(TrainingOptionsTest, Encoder) {
  Engine engine(options());
  Random random(4);
  for (const Norm norm : {Norm::post, Norm::pre}) {
    for (const float dropout : {0.0f, 0.25f}) {
      SCOPED_TRACE(testing::Message() << (norm == Norm::pre ? "pre" : "post") << ", dropout " << dropout);
      Encoder encoder({.vocabulary = 6,
                       .max_positions = 5,
                       .token_types = 2,
                       .width = 8,
                       .heads = 2,
                       .feed_forward_width = 12,
                       .layers = 2,
                       .norm = norm,
                       .layer_norm_epsilon = 1e-5f,
                       .dropout = dropout});
      randomize(encoder, random);
      encoder.set_training(true);
      const Tokens tokens(random, 6, {4, 1, 3});
      const auto weights = random.normal_tensor<2>({tokens.count(), 8});
      const TrainingStep step = {.seed = random.next(), .step = 5, .layer = 1, .layers = 3};
      Tensor<float, 2> hidden(weights.shape());
      SavedState saved;
      encoder.forward(engine, tokens.input(), hidden, saved, step);
      encoder.backward(engine, tokens.input(), saved, weights);

      TwinWeights<double> twin(encoder.weights());
      const Tensor<double, 2> twin_weights = converted<double>(weights);
      const auto loss = [&] {
        const Tensor<double, 3> out = encoder_twin(twin, encoder.options(), tokens, step, dropout);
        double sum = 0;
        for (std::int64_t n = 0; n < out.size(); ++n) sum += out.data()[n] * twin_weights.data()[n];
        return sum;
      };
      expect_parameter_gradients(encoder, twin, loss, {.tolerance = kLayerCheck.tolerance, .places = 25});
    }
  }
}

// More rows than go through both products at once, in two matrices that do not lie one behind the other: rows count on
// through all of them, for dropout too.
TEST_P(TrainingOptionsTest, FeedForwardInPortions) {
  constexpr std::int64_t kWidth = 4, kHidden = 11000, kBatch = 2, kLength = 200, kRows = kBatch * kLength;
  ASSERT_LT(layers::rows_at_once(kRows, kHidden), kLength);
  Engine engine(options(2));
  Random random(5);
  FeedForward layer({.width = kWidth, .hidden_width = kHidden, .activation = Activation::gelu, .dropout = 0.3f});
  randomize(layer, random);
  layer.set_training(true);
  const auto memory = random.normal_tensor<3>({kBatch, kLength + 3, kWidth});
  const View<const float, 3> x(memory.data(), {kBatch, kLength, kWidth}, {(kLength + 3) * kWidth, kWidth, 1});
  const auto weights = random.normal_tensor<3>(x.shape);
  const TrainingStep step = {.seed = random.next(), .step = 7};
  Tensor<float, 3> y(x.shape), x_gradient(x.shape);
  SavedState saved;
  layer.forward(engine, x, y, saved, step);
  layer.backward(engine, x, saved, weights, x_gradient);

  const TwinWeights<double> twin(layer.weights());
  Tensor<double, 2> twin_x({kRows, kWidth}), before({kRows, kHidden}), after({kRows, kHidden}), out({kRows, kWidth});
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t e = 0; e < kWidth; ++e) twin_x(row, e) = static_cast<double>(x(row / kLength, row % kLength, e));
  }
  const Dropout dropout = step.dropout(0.3f, 0);
  reference::linear<double>(twin_x, twin.matrix("linear1.weight"), twin.vector("linear1.bias"), before);
  for (std::int64_t n = 0; n < before.size(); ++n) {
    after.data()[n] = reference::activate(Activation::gelu, before.data()[n]);
  }
  reference::dropout<double>(after, after, dropout);
  reference::linear<double>(after, twin.matrix("linear2.weight"), twin.vector("linear2.bias"), out);
  Tensor<double, 2> gradient({kRows, kHidden}), twin_x_gradient({kRows, kWidth});
  Tensor<double, 2> weight1({kHidden, kWidth}), weight2({kWidth, kHidden});
  Tensor<double, 1> bias1({kHidden}), bias2({kWidth});
  const Tensor<double, 3> twin_weights = converted<double>(weights);
  reference::linear_backward<double>(after, twin.matrix("linear2.weight"), reference::rows_of(twin_weights.view()),
                                     gradient, weight2, bias2);
  reference::dropout<double>(gradient, gradient, dropout);
  for (std::int64_t n = 0; n < before.size(); ++n) {
    gradient.data()[n] *= reference::activation_derivative(Activation::gelu, before.data()[n]);
  }
  reference::linear_backward<double>(twin_x, twin.matrix("linear1.weight"), gradient, twin_x_gradient, weight1, bias1);

  // Sums of 11,000 products, and of 400.
  EXPECT_TRUE(within(reference::rows_of(y.view()), out.view(), 2e-5));
  EXPECT_TRUE(within(reference::rows_of(x_gradient.view()), twin_x_gradient.view(), 2e-5));
  const auto parameter = [&](const std::string& name, const auto& truth) {
    for (const Parameter& one : layer.parameters()) {
      if (one.name != name) continue;
      const View<const float, 1> found(one.gradient.data(), {static_cast<std::int64_t>(one.gradient.size())});
      const View<const double, 1> expected(truth.data(), {truth.size()});
      EXPECT_TRUE(within(found, expected, 2e-6)) << name;
      return;
    }
    ADD_FAILURE() << "there is no " << name;
  };
  parameter("linear1.weight", weight1);
  parameter("linear1.bias", bias1);
  parameter("linear2.weight", weight2);
  parameter("linear2.bias", bias2);
}

}  // namespace headlight::test::training_options_test
