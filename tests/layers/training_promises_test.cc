// What training promises beside its gradients: the same bits whatever the threads and whatever is kept, no allocation.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "baseline/attention_unfused.h"
#include "headlight/optimizer.h"
#include "layers/encoder_twin.h"
#include "layers/gradients.h"
#include "layers/training_fixture.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test::training_promises_test {

using TrainingPromisesTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(TrainingPromisesTest);

EncoderOptions encoder_options(Norm norm, float dropout, Merge merge) {
  return {.vocabulary = 50,
          .max_positions = 80,
          .token_types = 2,
          .width = 48,
          .heads = 4,
          .feed_forward_width = 100,
          .layers = 5,
          .norm = norm,
          .layer_norm_epsilon = 1e-5f,
          .dropout = dropout,
          .merge = merge};
}

// An encoder in training, and a pass forward and backward on some tokens.
struct Trained {
  Trained(Norm norm, float dropout, Merge merge = Merge::concatenate)
      : encoder(encoder_options(norm, dropout, merge)), tokens(random, 50, {70, 1, 33}) {
    randomize(encoder, random);
    encoder.set_training(true);
    parameters = encoder.parameters();
    weights = random.normal_tensor<2>({tokens.count(), 48});
    hidden = Tensor<float, 2>({tokens.count(), 48});
  }

  void pass(Engine& engine, SavedState& saved) {
    zero_gradients(parameters);
    encoder.forward(engine, tokens.input(), hidden, saved, {.seed = 5, .step = 17});
    encoder.backward(engine, tokens.input(), saved, weights);
  }

  [[nodiscard]] std::vector<float> gradients() const { return gradients_of(parameters); }

  Random random{1};
  Encoder encoder;
  Tokens tokens;
  Tensor<float, 2> weights, hidden;
  std::vector<Parameter> parameters;
};

constexpr NumberType kActivations[] = {NumberType::float32, NumberType::bfloat16};

void expect_same_bits(const EngineOptions& made, Trained& trained, NumberType activations) {
  const auto engine_of = [&](int threads) {
    EngineOptions options = made;
    options.threads = threads;
    return options;
  };
  Engine one(engine_of(1));
  SavedState all(activations);
  trained.pass(one, all);
  const std::vector<float> truth = trained.gradients();
  Tensor<float, 2> hidden({trained.tokens.count(), 48});
  std::copy(trained.hidden.begin(), trained.hidden.end(), hidden.begin());
  for (const int threads : quick() ? std::vector<int>{1, 3} : std::vector<int>{1, 2, 3, 5}) {
    Engine engine(engine_of(threads));
    for (const auto& [checkpoint, k] : {std::pair{Checkpoint::keep_linear, 0},
                                        {Checkpoint::layer_input, 0},
                                        {Checkpoint::every_k_layers, 0},
                                        {Checkpoint::every_k_layers, 3},
                                        {Checkpoint::every_k_layers, 100}}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, checkpoint " << static_cast<int>(checkpoint) << ", "
                                      << k);
      SavedState saved(activations, checkpoint, k);
      trained.pass(engine, saved);
      EXPECT_TRUE(same_bits(trained.hidden, hidden));
      EXPECT_TRUE(same_bits(row_of(trained.gradients()), row_of(truth)));
      if (checkpoint != Checkpoint::keep_linear) {
        EXPECT_LT(saved.bytes(), all.bytes());
      }
    }
  }
}

TEST_P(TrainingPromisesTest, TheSameBitsOnAnyNumberOfThreadsWhateverIsKept) {
  std::vector<std::pair<Norm, Merge>> encoders{{Norm::post, Merge::concatenate},
                                               {Norm::pre, Merge::gated_by_element},
                                               {Norm::pre, Merge::concatenate},
                                               {Norm::pre, Merge::weighted},
                                               {Norm::post, Merge::weighted_by_input}};
  encoders.resize(count(encoders.size(), std::size_t{2}));
  for (const auto& [norm, merge] : encoders) {
    Trained trained(norm, 0.1f, merge);
    for (const NumberType activations : kActivations) expect_same_bits(options(), trained, activations);
  }
}

TEST_P(TrainingPromisesTest, TheUnfusedBaselineAgrees) {
  Engine engine(options());
  Trained trained(Norm::pre, 0.1f);
  SavedState linear, unfused(Checkpoint::keep_linear, 0, baseline::unfused_attention());
  trained.pass(engine, linear);
  const std::vector<float> truth = trained.gradients();
  trained.pass(engine, unfused);
  EXPECT_TRUE(within(row_of(trained.gradients()), row_of(truth), 1e-5));
  // It keeps the probabilities of every head: of packed sequences as many to a row as the longest one has keys.
  EXPECT_GT(unfused.bytes(), linear.bytes());
  // What is computed again is computed as it was.
  const std::vector<float> kept = trained.gradients();
  for (const Checkpoint checkpoint : {Checkpoint::layer_input, Checkpoint::every_k_layers}) {
    SavedState again(checkpoint, 0, baseline::unfused_attention());
    trained.pass(engine, again);
    EXPECT_TRUE(same_bits(row_of(trained.gradients()), row_of(kept))) << static_cast<int>(checkpoint);
    EXPECT_LT(again.bytes(), unfused.bytes());
  }
}

// Without dropout a forward pass in training is the one that inference makes.
TEST_P(TrainingPromisesTest, WithoutDropoutTheBitsAreThoseOfInference) {
  Engine engine(options());
  for (const Norm norm : {Norm::post, Norm::pre}) {
    Trained trained(norm, 0.0f);
    Tensor<float, 2> hidden({trained.tokens.count(), 48});
    trained.encoder.forward(engine, trained.tokens.input(), hidden);
    for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::every_k_layers}) {
      SavedState saved(checkpoint);
      trained.pass(engine, saved);
      EXPECT_TRUE(same_bits(trained.hidden, hidden));
    }
  }
}

TEST_P(TrainingPromisesTest, AllocatesNothingInTheSecondStep) {
  for (const int threads : {1, 3}) {
    for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::layer_input, Checkpoint::every_k_layers}) {
      for (const NumberType activations : kActivations) {
        Engine engine(options(threads));
        wait_for_workers(engine);
        Trained trained(Norm::post, 0.1f, Merge::weighted_by_input);
        SavedState saved(activations, checkpoint);
        trained.pass(engine, saved);
        const AllocationCounter counter;
        trained.pass(engine, saved);
        EXPECT_EQ(counter.count(), 0) << threads << " threads, checkpoint " << static_cast<int>(checkpoint) << ", "
                                      << name(activations);
      }
    }
  }
}

// The heads of every layer come by once, as inference gives them; what a visitor does to the gradient goes on backward.
class Recorder final : public HeadVisitor {
 public:
  explicit Recorder(float factor) : factor_(factor) {}
  void visit(Engine& engine, std::int64_t layer, View<const float, 3> outputs, View<float, 3> gradient) override {
    static_cast<void>(engine);
    layers.push_back(layer);
    for (std::int64_t n = 0; n < outputs.extent(1); ++n) {
      for (std::int64_t e = 0; e < outputs.extent(2); ++e) {
        values.push_back(outputs(0, n, e));
        gradient(0, n, e) *= factor_;
      }
    }
  }
  std::vector<std::int64_t> layers;
  std::vector<float> values;

 private:
  float factor_;
};

// A pass with nobody looking, and back again with one who changes nothing, whom it returns, and one who takes it all.
Recorder visited(Engine& engine, Trained& trained, SavedState& saved) {
  trained.pass(engine, saved);
  const std::vector<float> truth = trained.gradients();
  Recorder same(1), nothing(0);
  for (Recorder* recorder : {&same, &nothing}) {
    zero_gradients(trained.parameters);
    trained.encoder.backward(engine, trained.tokens.input(), saved, trained.weights, recorder);
    EXPECT_EQ(recorder->layers, (std::vector<std::int64_t>{4, 3, 2, 1, 0}));
    if (recorder == &same) {
      EXPECT_TRUE(same_bits(row_of(trained.gradients()), row_of(truth)));
      continue;
    }
    for (const Parameter& parameter : trained.parameters) {
      if (parameter.name.find("in_proj") == std::string::npos) continue;
      for (const float gradient : parameter.gradient) EXPECT_EQ(gradient, 0.0f) << parameter.name;
    }
  }
  return same;
}

TEST_P(TrainingPromisesTest, HeadsAreVisitedOnTheWayBack) {
  Engine engine(options(2));
  Trained trained(Norm::pre, 0.0f, Merge::gated_by_head);
  Tensor<float, 2> outputs({trained.tokens.count(), 48});
  for (const Checkpoint checkpoint : {Checkpoint::keep_linear, Checkpoint::every_k_layers}) {
    SavedState saved(checkpoint);
    const Recorder same = visited(engine, trained, saved);
    const LayerHeads wanted = {.layer = 4, .outputs = outputs};
    trained.encoder.forward(engine, trained.tokens.input(), trained.hidden, {}, {&wanted, 1});
    EXPECT_TRUE(std::equal(outputs.begin(), outputs.end(), same.values.begin()));
  }
  // Those that are kept in bfloat16 are shown widened, and the gradient before it is rounded.
  for (const Merge merge : {Merge::concatenate, Merge::gated_by_head}) {
    Trained narrow(Norm::pre, 0.1f, merge);
    SavedState saved(NumberType::bfloat16);
    visited(engine, narrow, saved);
  }
}

// Six steps, and three with three more by another encoder and another optimiser that got the numbers of the first.
TEST_P(TrainingPromisesTest, AStoppedRunGoesOnWithTheSameBits) {
  Engine engine(options(2));
  const auto steps = [&](Trained& trained, AdamW& adamw, std::uint64_t first, std::uint64_t end) {
    SavedState saved(Checkpoint::every_k_layers);
    for (std::uint64_t step = first; step < end; ++step) {
      adamw.zero_gradients();
      trained.encoder.forward(engine, trained.tokens.input(), trained.hidden, saved, {.seed = 5, .step = step});
      trained.encoder.backward(engine, trained.tokens.input(), saved, trained.weights);
      EXPECT_TRUE(adamw.step(engine, {.learning_rate = 1e-3, .max_norm = 1}).taken());
    }
  };
  Trained straight(Norm::pre, 0.1f);
  AdamW adamw(straight.parameters);
  steps(straight, adamw, 0, 6);

  Trained before(Norm::pre, 0.1f), after(Norm::pre, 0.1f);
  AdamW first(before.parameters);
  steps(before, first, 0, 3);
  after.encoder.load(before.encoder.weights());
  AdamW second(after.encoder.parameters());
  const std::vector<Parameter> from = first.state(), to = second.state();
  for (std::size_t m = 0; m < from.size(); ++m) {
    std::copy(from[m].values.begin(), from[m].values.end(), to[m].values.begin());
  }
  second.set_steps(first.steps());
  steps(after, second, 3, 6);
  EXPECT_TRUE(same_bits(after.hidden, straight.hidden));
  for (std::size_t p = 0; p < straight.parameters.size(); ++p) {
    const std::span<const float> a = straight.parameters[p].values, b = after.parameters[p].values;
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << straight.parameters[p].name;
  }
}

// Another step, seed or layer draws other numbers; gradients add up until they are set to zero.
TEST_P(TrainingPromisesTest, StepsDrawTheirOwnNumbersAndGradientsAddUp) {
  Engine engine(options());
  Random random(2);
  TransformerEncoderLayer layer({.width = 16, .heads = 2, .feed_forward_width = 32, .dropout = 0.5f});
  randomize(layer, random);
  layer.set_training(true);
  const auto x = random.normal_tensor<3>({1, 9, 16});
  Tensor<float, 3> first(x.shape()), again(x.shape()), other(x.shape()), x_gradient(x.shape());
  SavedState saved;
  layer.forward(engine, x, first, saved, {.seed = 1, .step = 2, .layer = 0, .layers = 3});
  layer.forward(engine, x, again, saved, {.seed = 1, .step = 2, .layer = 0, .layers = 3});
  EXPECT_TRUE(same_bits(first, again));
  for (const TrainingStep& step : {TrainingStep{1, 3, 0, 3}, TrainingStep{2, 2, 0, 3}, TrainingStep{1, 2, 1, 3}}) {
    layer.forward(engine, x, other, saved, step);
    EXPECT_FALSE(same_bits(first, other));
  }
  const std::vector<Parameter> parameters = layer.parameters();
  layer.backward(engine, x, saved, first, x_gradient);
  const std::vector<float> once(parameters[0].gradient.begin(), parameters[0].gradient.end());
  layer.backward(engine, x, saved, first, x_gradient);
  for (std::size_t n = 0; n < once.size(); ++n) EXPECT_NEAR(parameters[0].gradient[n], 2 * once[n], 1e-5f);
  zero_gradients(parameters);
  for (const float gradient : parameters[0].gradient) EXPECT_EQ(gradient, 0.0f);
  layer.set_training(false);
  EXPECT_TRUE(layer.parameters()[0].gradient.empty());
}

TEST(TrainingArguments, ADropoutIsAProbabilityBelowOne) {
  for (const float bad : {-0.1f, 1.0f, std::nanf("")}) {
    const auto refused = [&](const auto& make, const std::string& layer) {
      EXPECT_NE(refusal(make).find(layer + ": dropout is "), std::string::npos) << refusal(make);
    };
    refused([&] { MultiHeadAttention({.width = 8, .heads = 2, .dropout = bad}); }, "MultiHeadAttention");
    refused([&] { FeedForward({.width = 8, .hidden_width = 8, .dropout = bad}); }, "FeedForward");
    refused([&] { TransformerEncoderLayer({.width = 8, .heads = 2, .dropout = bad}); }, "TransformerEncoderLayer");
    refused([&] { TransformerDecoderLayer({.width = 8, .heads = 2, .dropout = bad}); }, "TransformerDecoderLayer");
    refused([&] { Encoder({.vocabulary = 2, .max_positions = 2, .width = 8, .layers = 0, .dropout = bad}); },
            "Encoder");
  }
}

TEST(TrainingArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  TransformerEncoderLayer layer({.width = 8, .heads = 2}), other({.width = 8, .heads = 2});
  Tensor<float, 3> x({1, 4, 8}), y({1, 4, 8}), longer({1, 5, 8});
  SavedState saved;
  EXPECT_EQ(refusal([&] { layer.backward(engine, x, saved, y, y); }),
            "TransformerEncoderLayer: saved holds no forward pass, expected that of this layer");
  EXPECT_EQ(refusal([&] { layer.forward(engine, x, x, saved, {}); }),
            "TransformerEncoderLayer: y overlaps x in memory");
  layer.forward(engine, x, y, saved, {});
  EXPECT_EQ(refusal([&] { layer.backward(engine, x, saved, y, y); }),
            "TransformerEncoderLayer: is not in training, expected set_training(true) before backward()");
  layer.set_training(true);
  EXPECT_EQ(refusal([&] { layer.backward(engine, x, saved, longer, y); }),
            "TransformerEncoderLayer: y_gradient has shape [1, 5, 8], expected [1, 4, 8] (the shape of x)");
  EXPECT_EQ(refusal([&] { layer.backward(engine, x, saved, y, x); }),
            "TransformerEncoderLayer: x_gradient overlaps x in memory");
  EXPECT_EQ(refusal([&] { layer.backward(engine, longer, saved, longer, y); }),
            "TransformerEncoderLayer: saved holds a forward pass of lengths [1, 4, 0], expected [1, 5, 0]");
  EXPECT_EQ(refusal([&] { other.backward(engine, x, saved, y, y); }),
            "TransformerEncoderLayer: saved holds the forward pass of another layer, expected that of this one");
  EXPECT_EQ(refusal([&] { layer.forward(engine, x, y, saved, {}, {.dropout = {.probability = 0.1f}}); }),
            "TransformerEncoderLayer: options.dropout is given, expected none: in training it is the layer's own");
  // A pass that fails midway leaves nothing to go back from.
  MultiHeadAttention attention({.width = 8, .heads = 2});
  attention.set_training(true);
  attention.forward(engine, x, x, x, y, saved, {});
  Tensor<float, 4> wrong({1, 2, 4, 5});
  EXPECT_NE(refusal([&] { attention.forward(engine, x, x, x, y, saved, {}, {.probabilities = {.per_head = wrong}}); }),
            "");
  EXPECT_EQ(refusal([&] { attention.backward(engine, x, x, x, saved, y, {}); }),
            "MultiHeadAttention: saved holds no forward pass, expected that of this layer");
  EXPECT_EQ(refusal([&] { SavedState(Checkpoint::every_k_layers, -1); }),
            "SavedState: k is -1, expected at least 1, or 0 for √n");
}

}  // namespace headlight::test::training_promises_test
