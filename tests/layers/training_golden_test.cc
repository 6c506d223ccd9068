// Twenty steps of a two-layer encoder and AdamW alone, against PyTorch's numbers: see tests/golden/training.py.
#include <cmath>
#include <map>
#include <string>

#include "headlight/layers.h"
#include "headlight/loss.h"
#include "headlight/optimizer.h"
#include "support/compare.h"
#include "support/golden.h"
#include "support/isas.h"
#include "support/random.h"

namespace headlight::test::training_golden_test {

constexpr std::int64_t kVocabulary = 20, kPositions = 8, kTypes = 2, kClasses = 11;
constexpr std::int64_t kWidth = 16, kHeads = 4, kFeedForward = 24, kSequences = 3, kLength = 7, kIterations = 20;

// The encoder's parameters and the head's, by ascending name.
std::map<std::string, Parameter> by_name(Encoder& encoder, Linear& head) {
  std::map<std::string, Parameter> all;
  for (const Parameter& parameter : encoder.parameters()) all[parameter.name] = parameter;
  for (const Parameter& parameter : head.parameters()) all["head." + parameter.name] = parameter;
  return all;
}

void fill(const std::map<std::string, Parameter>& parameters, Random& random) {
  for (const auto& [name, parameter] : parameters) {
    const bool is_matrix = parameter.shape.size() == 2;
    const auto scale = is_matrix ? static_cast<float>(1 / std::sqrt(static_cast<double>(parameter.shape[1]))) : 0.1f;
    const bool about_one = name.find("norm") != std::string::npos && name.ends_with("weight");
    for (float& value : parameter.values) value = (about_one ? 1.0f : 0.0f) + scale * random.normal();
  }
}

std::vector<std::int64_t> integers(Random& random, std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t n = 0; n < kSequences * kLength; ++n) {
    numbers.push_back(static_cast<std::int64_t>(random.next() % static_cast<std::uint64_t>(count)));
  }
  return numbers;
}

void follow(Engine& engine, GoldenNumbers& golden, std::uint64_t seed, Norm norm) {
  Random random(seed);
  Encoder encoder({.vocabulary = kVocabulary,
                   .max_positions = kPositions,
                   .token_types = kTypes,
                   .width = kWidth,
                   .heads = kHeads,
                   .feed_forward_width = kFeedForward,
                   .layers = 2,
                   .norm = norm,
                   .layer_norm_epsilon = 1e-5f,
                   .dropout = 0.0f});
  Linear head(kWidth, kClasses);
  encoder.set_training(true);
  head.set_training(true);
  const std::map<std::string, Parameter> parameters = by_name(encoder, head);
  fill(parameters, random);
  const std::vector<std::int64_t> ids = integers(random, kVocabulary), types = integers(random, kTypes);
  std::vector<std::int64_t> labels = integers(random, kClasses), positions, offsets;
  for (std::int64_t n = 0; n < kSequences * kLength; ++n) positions.push_back(n % kLength);
  for (std::int64_t s = 0; s <= kSequences; ++s) offsets.push_back(s * kLength);
  for (std::int64_t s = 0; s < kSequences; ++s) labels[static_cast<std::size_t>(s * kLength)] = -100;
  const EncoderInput input = {ids, positions, types, offsets};

  std::vector<Parameter> list;
  for (const auto& [name, parameter] : parameters) list.push_back(parameter);
  Sgd sgd(list, {.momentum = 0.9, .weight_decay = 0.01});
  SavedState saved;
  Tensor<float, 2> hidden({kSequences * kLength, kWidth}), gradient(hidden.shape());
  Tensor<float, 2> logits({kSequences * kLength, kClasses});
  const auto losses = golden.next<1>({kIterations});
  for (std::int64_t step = 0; step < kIterations; ++step) {
    sgd.zero_gradients();
    encoder.forward(engine, input, hidden, saved, {.step = static_cast<std::uint64_t>(step)});
    head.forward(engine, hidden, logits);
    const CrossEntropy found = cross_entropy(engine, logits, labels, {.logits_gradient = logits});
    EXPECT_NEAR(found.loss, losses(step), 1e-5 * losses(step)) << "step " << step;
    head.backward(engine, hidden, logits, gradient);
    encoder.backward(engine, input, saved, gradient);
    EXPECT_TRUE(sgd.step(engine, {.learning_rate = 0.05}).taken());
  }
  for (const auto& [name, parameter] : parameters) {
    const auto truth = golden.next<1>({static_cast<std::int64_t>(parameter.values.size())});
    double largest = 0, worst = 0;
    for (std::int64_t n = 0; n < truth.size(); ++n) {
      const double error = std::abs(static_cast<double>(parameter.values[static_cast<std::size_t>(n)]) - truth(n));
      largest = std::max(largest, std::abs(truth(n)));
      worst = error <= worst ? worst : error;
    }
    EXPECT_LE(worst, 1e-5 * largest) << name;
  }
}

using TrainingGoldenTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(TrainingGoldenTest);

TEST_P(TrainingGoldenTest, FollowsPyTorch) {
  Engine engine(options(2));
  GoldenNumbers golden("training.npy");
  follow(engine, golden, 1, Norm::post);
  follow(engine, golden, 2, Norm::pre);

  Random random(3);
  Tensor<float, 1> values = random.normal_tensor<1>({100}), gradient({100});
  AdamW adamw({{"values", {100}, {values.data(), 100}, {gradient.data(), 100}}},
              {.beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-6, .weight_decay = 0.1});
  for (int step = 0; step < 10; ++step) {
    const Tensor<float, 1> next = random.normal_tensor<1>({100});
    std::copy(next.begin(), next.end(), gradient.begin());
    EXPECT_TRUE(adamw.step(engine, {.learning_rate = 0.01}).taken());
  }
  // PyTorch's were in float32 as well.
  const auto truth = golden.next<1>({100});
  for (std::int64_t n = 0; n < 100; ++n) EXPECT_NEAR(values(n), truth(n), 5e-7) << n;
  EXPECT_TRUE(golden.at_end());
}

}  // namespace headlight::test::training_golden_test
