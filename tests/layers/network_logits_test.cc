// Logits of networks: against the twin, and of a table that serves both ends.
#include <cmath>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/layers/network.h"
#include "layers/network_case.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/refusal.h"

namespace headlight::test::network_logits_test {

using NetworkLogitsTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(NetworkLogitsTest);

using Weight = LogitsSpec::Weight;

// No blocks, and logits that are wanted.
NetworkSpec specification(Random& random, std::int64_t width) {
  NetworkSpec spec;
  spec.width = width;
  spec.embedding.vocabulary = 37;
  while (!spec.logits) spec.logits = draw_logits(random);
  return spec;
}

Tensor<float, 2> logits(Engine& engine, const Network& network, const View<const float, 2>& hidden) {
  Tensor<float, 2> made({hidden.extent(0), network.spec().embedding.vocabulary});
  network.logits(engine, hidden, made.view());
  return made;
}

TEST_P(NetworkLogitsTest, AgreeWithTheTwin) {
  Engine engine(options(2));
  Random random(1);
  for (std::int64_t width = 1; width < 60; ++width) {
    Network network(specification(random, width));
    randomize(network, random);
    const Tensor<float, 2> hidden = random.normal_tensor<2>({random.integer(1, 9), width}, 2.0f);
    Tensor<double, 2> exact_hidden(hidden.shape());
    std::copy(hidden.begin(), hidden.end(), exact_hidden.begin());
    const Tensor<double, 2> truth = logits_twin(network.spec(), TwinWeights<double>(network.weights()), exact_hidden);
    const Tensor<float, 2> plain = logits_twin(network.spec(), TwinWeights<float>(network.weights()), hidden);
    const double plain_error = worst_row_error(plain.view(), truth.view(), truth.view()).error;
    const Tensor<float, 2> made = logits(engine, network, hidden.view());
    EXPECT_TRUE(within(made.view(), truth.view(), 2 * plain_error + 16 * kUnitRoundoff, truth.view())) << width;
  }
}

TEST_P(NetworkLogitsTest, HaveTheSameBitsOnAnyNumberOfThreadsAndAlone) {
  Engine one(options(1)), three(options(3));
  Random random(2);
  for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::int8}) {
    Network network(specification(random, 24));
    randomize(network, random);
    network.set_precision(type);
    const Tensor<float, 2> hidden = random.normal_tensor<2>({50, 24});
    const Tensor<float, 2> once = logits(one, network, hidden.view());
    EXPECT_TRUE(same_bits(logits(three, network, hidden.view()).view(), once.view()));
    const Tensor<float, 2> last = logits(one, network, View<const float, 2>(&hidden(49, 0), {1, 24}));
    EXPECT_TRUE(same_bits(last.view(), View<const float, 2>(&once(49, 0), {1, 37})));
  }
}

// Products read panels, whose matrix else lets go of its rows.
TEST_P(NetworkLogitsTest, OfTheTableOfWordsLeaveItAsItIs) {
  Engine engine(options(1));
  Random random(3);
  for (const NumberType type : {NumberType::float32, NumberType::bfloat16}) {
    NetworkSpec spec = specification(random, 16);
    spec.logits = {.weight = Weight::word_embeddings, .cap = 30};
    Network network(spec), other(spec);
    randomize(network, random);
    other.load(network.weights());
    network.set_precision(type);
    const Tokens tokens(random, 37, {12});
    Tensor<float, 2> hidden({12, 16}), again(hidden.shape());
    network.forward(engine, tokens.input(), hidden.view());
    const Tensor<float, 2> made = logits(engine, network, hidden.view());
    network.forward(engine, tokens.input(), again.view());
    EXPECT_TRUE(same_bits(again.view(), hidden.view()));
    // In training every call reads the table as it is then.
    network.set_precision(NumberType::float32);
    network.set_training(true);
    for (const Parameter& parameter : network.parameters()) {
      for (float& value : parameter.values) value *= 2;
    }
    const Tensor<float, 2> trained = logits(engine, network, hidden.view());
    for (const Parameter& parameter : other.parameters()) {
      for (float& value : parameter.values) value *= 2;
    }
    EXPECT_TRUE(same_bits(trained.view(), logits(engine, other, hidden.view()).view()));
    EXPECT_FALSE(same_bits(trained.view(), made.view()));
  }
}

TEST_P(NetworkLogitsTest, AllocateNothingOnceReserved) {
  Engine engine(options(2));
  Random random(4);
  for (const Weight weight : {Weight::word_embeddings, Weight::own}) {
    NetworkSpec spec = specification(random, 24);
    spec.logits.weight = weight;
    Network network(spec);
    randomize(network, random);
    network.set_precision(NumberType::bfloat16);
    network.reserve(engine, 40);
    const Tensor<float, 2> hidden = random.normal_tensor<2>({40, 24});
    Tensor<float, 2> made({40, 37});
    const AllocationCounter counter;
    network.logits(engine, hidden.view(), made.view());
    EXPECT_EQ(counter.count(), 0);
  }
}

TEST(NetworkLogits, RefuseWhatDoesNotFit) {
  Engine engine({.threads = 1});
  NetworkSpec spec;
  spec.width = 4;
  spec.embedding.vocabulary = 3;
  Tensor<float, 2> hidden({2, 4}), made({2, 3}), narrow({2, 2}), gradient({2, 4});
  const auto says = [&](const Network& network, const View<float, 2>& out) {
    return refusal([&] { network.logits(engine, hidden.view(), out); });
  };
  EXPECT_EQ(says(Network(spec), made.view()), "Network: has no logits, expected NetworkSpec::logits with them");
  spec.logits = {.weight = Weight::own, .cap = 1};
  Network network(spec);
  EXPECT_EQ(says(network, made.view()), "");
  EXPECT_EQ(says(network, narrow.view()), "Network: logits has shape [2, 2], expected [2, 3] ([N, vocabulary])");
  EXPECT_EQ(says(network, View<float, 2>(hidden.data(), {2, 3})), "Network: logits overlaps hidden in memory");
  const auto back = [&](const View<const float, 2>& logits) {
    return refusal([&] { network.logits_backward(engine, hidden.view(), logits, made.view(), gradient.view()); });
  };
  EXPECT_EQ(back(narrow.view()), "Network: logits has shape [2, 2], expected [2, 3] ([N, vocabulary])");
  Tensor<float, 2> given({2, 3});
  EXPECT_EQ(back(given.view()), "Network: is not in training, expected set_training(true) before backward()");
  network.set_training(true);
  EXPECT_EQ(back(given.view()), "");
  EXPECT_EQ(back(made.view()), "");
  Tensor<float, 2> longer({3, 3});
  const auto of = [&](Network& of_network, const View<const float, 2>& logits, const View<float, 2>& by) {
    return refusal([&] { of_network.logits_backward(engine, hidden.view(), logits, by, gradient.view()); });
  };
  const View<float, 2> one_row(made.data(), {2, 3}, {0, 1}), below(longer.data() + 3, {2, 3});
  EXPECT_EQ(of(network, View<float, 2>(longer.data(), {2, 3}), below),
            "Network: logits_gradient overlaps logits in memory");
  const std::string_view overlaps =
      "Network: logits_gradient of shape [2, 3] and strides [0, 1] overlaps itself in memory";
  EXPECT_EQ(of(network, given.view(), one_row), overlaps);
  // What is not overwritten may lie anywhere.
  for (const float factor : {1.0f, 2.0f}) {
    spec.logits = {.weight = Weight::own, .factor = factor};
    Network uncapped(spec);
    uncapped.set_training(true);
    EXPECT_EQ(of(uncapped, View<float, 2>(longer.data(), {2, 3}), below), "");
    EXPECT_EQ(of(uncapped, {}, one_row), factor == 1 ? "" : overlaps);
  }
  const auto refused = [&](const LogitsSpec& logits) {
    spec.logits = logits;
    return refusal([&] { Network made_of(spec); });
  };
  EXPECT_EQ(refused({.weight = static_cast<Weight>(3)}), "Network: logits.weight is 3, expected one of the enum");
  EXPECT_EQ(refused({.weight = Weight::own, .factor = NAN}), "Network: logits.factor is nan, expected a finite number");
  EXPECT_EQ(refused({.weight = Weight::own, .cap = -1}),
            "Network: logits.cap is -1, expected 0 or a positive normal number");
}

}  // namespace headlight::test::network_logits_test
