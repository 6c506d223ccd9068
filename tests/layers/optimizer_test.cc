#include "headlight/optimizer.h"

#include <cmath>
#include <limits>

#include "headlight/layers.h"
#include "reference/optimizer.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/random.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test::optimizer_test {

using OptimizerTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(OptimizerTest);

// Parameters of ragged sizes with gradients, in memory of their own.
struct Numbers {
  explicit Numbers(std::uint64_t seed) {
    Random random(seed);
    for (const std::int64_t size : {1, 7, 16, 33, 20000, 40001}) {
      values.push_back(random.normal_tensor<1>({size}));
      gradients.push_back(random.normal_tensor<1>({size}));
    }
  }
  [[nodiscard]] std::vector<Parameter> parameters() {
    std::vector<Parameter> list;
    for (std::size_t p = 0; p < values.size(); ++p) {
      const auto span = [](Tensor<float, 1>& t) { return std::span(t.data(), static_cast<std::size_t>(t.size())); };
      list.push_back(
          {std::string(1, 'p').append(std::to_string(p)), {values[p].size()}, span(values[p]), span(gradients[p])});
    }
    return list;
  }
  std::vector<Tensor<float, 1>> values, gradients;
};

template <class Scalar>
std::span<Scalar> all(Tensor<Scalar, 1>& tensor) {
  return {tensor.data(), static_cast<std::size_t>(tensor.size())};
}

TEST_P(OptimizerTest, AdamWFollowsItsTwin) {
  Engine engine(options(2));
  Numbers numbers(1), start(1);
  const AdamWOptions made = {.weight_decay = 0.1};
  AdamW adamw(numbers.parameters(), made);
  for (int step = 0; step < 5; ++step) EXPECT_TRUE(adamw.step(engine, {.learning_rate = 1e-2}).taken());
  EXPECT_EQ(adamw.steps(), 5);
  for (std::size_t p = 0; p < numbers.values.size(); ++p) {
    Tensor<double, 1> values = converted<double>(start.values[p]), gradient = converted<double>(start.gradients[p]);
    Tensor<double, 1> first(values.shape()), second(values.shape());
    for (int step = 1; step <= 5; ++step) {
      reference::adamw<double>(all(values), all(gradient), all(first), all(second), made, 1e-2, step);
    }
    EXPECT_TRUE(within(numbers.values[p].view(), values.view(), 1e-6)) << p;
  }
}

TEST_P(OptimizerTest, SgdFollowsItsTwin) {
  Engine engine(options(2));
  for (const double momentum : {0.0, 0.9}) {
    Numbers numbers(2), start(2);
    const SgdOptions made = {.momentum = momentum, .weight_decay = 0.01};
    Sgd sgd(numbers.parameters(), made);
    EXPECT_EQ(sgd.state().size(), momentum == 0 ? 0u : 6u);
    for (int step = 0; step < 5; ++step) EXPECT_TRUE(sgd.step(engine, {.learning_rate = 0.1}).taken());
    for (std::size_t p = 0; p < numbers.values.size(); ++p) {
      Tensor<double, 1> values = converted<double>(start.values[p]), gradient = converted<double>(start.gradients[p]);
      Tensor<double, 1> memory(values.shape());
      for (int step = 1; step <= 5; ++step) {
        reference::sgd<double>(all(values), all(gradient), momentum == 0 ? std::span<double>() : all(memory), made,
                               0.1);
      }
      EXPECT_TRUE(within(numbers.values[p].view(), values.view(), 1e-6)) << p;
    }
  }
}

TEST_P(OptimizerTest, ClippingScalesAllGradientsTogether) {
  Engine engine(options());
  Numbers numbers(3), start(3);
  Sgd sgd(numbers.parameters());
  double squares = 0;
  for (const Tensor<float, 1>& gradient : start.gradients) {
    for (const float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
  }
  const StepReport report = sgd.step(engine, {.learning_rate = 1, .max_norm = 2});
  EXPECT_NEAR(report.gradient_norm, std::sqrt(squares), 1e-9 * std::sqrt(squares));
  for (std::size_t p = 0; p < numbers.values.size(); ++p) {
    for (std::int64_t n = 0; n < numbers.values[p].size(); ++n) {
      const double expected = static_cast<double>(start.values[p](n)) -
                              static_cast<double>(start.gradients[p](n)) * 2 / (std::sqrt(squares) + 1e-6);
      ASSERT_NEAR(numbers.values[p](n), expected, 1e-6);
    }
  }
}

TEST_P(OptimizerTest, GivesTheSameBitsOnAnyNumberOfThreadsAndAfterAStop) {
  Numbers once(4);
  Engine one(options(1));
  AdamW straight(once.parameters());
  for (int step = 0; step < 6; ++step) (void)straight.step(one, {.learning_rate = 1e-2, .max_norm = 1});
  for (const int threads : {1, 2, 5}) {
    Engine engine(options(threads));
    Numbers again(4);
    std::vector<std::vector<float>> moments;
    {
      AdamW before(again.parameters());
      for (int step = 0; step < 3; ++step) (void)before.step(engine, {.learning_rate = 1e-2, .max_norm = 1});
      EXPECT_EQ(before.state()[0].name, "first_moment.p0");
      EXPECT_EQ(before.state()[11].name, "second_moment.p5");
      for (const Parameter& moment : before.state()) moments.emplace_back(moment.values.begin(), moment.values.end());
    }
    AdamW after(again.parameters());
    after.set_steps(3);
    const std::vector<Parameter> state = after.state();
    for (std::size_t m = 0; m < state.size(); ++m) {
      std::copy(moments[m].begin(), moments[m].end(), state[m].values.begin());
    }
    for (int step = 3; step < 6; ++step) (void)after.step(engine, {.learning_rate = 1e-2, .max_norm = 1});
    for (std::size_t p = 0; p < once.values.size(); ++p) {
      EXPECT_TRUE(same_bits(again.values[p], once.values[p])) << threads << " threads, " << p;
    }
  }
}

TEST_P(OptimizerTest, TakesNoStepAlongGradientsThatAreNotFinite) {
  Engine engine(options());
  for (const float wrong : {std::nanf(""), INFINITY}) {
    Numbers numbers(5), start(5);
    AdamW adamw(numbers.parameters());
    numbers.gradients[4](12345) = wrong;
    const StepReport report = adamw.step(engine, {});
    EXPECT_FALSE(report.taken());
    EXPECT_EQ(report.non_finite, "p4");
    EXPECT_EQ(adamw.steps(), 0);
    for (std::size_t p = 0; p < start.values.size(); ++p) {
      EXPECT_TRUE(same_bits(numbers.values[p], start.values[p])) << p;
    }
  }
  // Nor where the parameter has no name.
  Numbers nameless(5);
  std::vector<Parameter> parameters = nameless.parameters();
  parameters[2].name = "";
  nameless.gradients[2](3) = std::nanf("");
  Sgd without_name(parameters);
  const StepReport report = without_name.step(engine, {});
  EXPECT_FALSE(report.taken());
  EXPECT_EQ(report.non_finite, "");
  EXPECT_TRUE(same_bits(nameless.values[2], Numbers(5).values[2]));
  // A gradient whose square no float holds is no infinity.
  Numbers numbers(5);
  Sgd sgd(numbers.parameters());
  numbers.gradients[0](0) = 1e30f;
  EXPECT_TRUE(sgd.step(engine, {.max_norm = 1}).taken());
}

TEST_P(OptimizerTest, AllocatesNothingInAStep) {
  for (const int threads : {1, 3}) {
    Engine engine(options(threads));
    wait_for_workers(engine);
    Numbers numbers(6);
    AdamW adamw(numbers.parameters());
    const AllocationCounter counter;
    (void)adamw.step(engine, {.max_norm = 1});
    adamw.zero_gradients();
    EXPECT_EQ(counter.count(), 0);
  }
}

TEST(WarmupCosine, RisesInALineAndFallsAlongACosine) {
  const WarmupCosine rate = {.peak = 2.0, .least = 0.5, .warmup = 4, .total = 12};
  EXPECT_DOUBLE_EQ(rate(0), 0.5);
  EXPECT_DOUBLE_EQ(rate(3), 2.0);
  EXPECT_DOUBLE_EQ(rate(4), 2.0);
  EXPECT_DOUBLE_EQ(rate(8), 1.25);
  EXPECT_DOUBLE_EQ(rate(12), 0.5);
  EXPECT_DOUBLE_EQ(rate(100), 0.5);
}

TEST(OptimizerArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  Linear linear(2, 3);
  EXPECT_EQ(refusal([&] { AdamW(linear.parameters()); }),
            "AdamW: parameter weight has no gradient, expected those of a layer in training");
  linear.set_training(true);
  EXPECT_EQ(refusal([&] { AdamW(linear.parameters(), {.beta1 = 1.0}); }),
            "AdamW: beta1 is 1.000000, expected a number in [0, 1)");
  EXPECT_EQ(refusal([&] { Sgd(linear.parameters(), {.momentum = -1}); }),
            "Sgd: momentum is -1.000000, expected a finite number ≥ 0");
  Sgd sgd(linear.parameters());
  EXPECT_EQ(refusal([&] { (void)sgd.step(engine, {.learning_rate = NAN}); }),
            "Sgd: learning_rate is nan, expected a finite number ≥ 0");
  EXPECT_EQ(refusal([&] { sgd.set_steps(-1); }), "Sgd: steps is -1, expected 0 to 2^62");
  EXPECT_EQ(refusal([&] { sgd.set_steps(std::numeric_limits<std::int64_t>::max()); }),
            "Sgd: steps is 9223372036854775807, expected 0 to 2^62");
}

// Otherwise workers would write to one place at once, and the bits would depend on threads.
TEST(OptimizerArguments, HaveMemoryOfTheirOwn) {
  std::vector<float> memory(40);
  const auto part = [&](std::size_t from, std::size_t count) { return std::span(memory).subspan(from, count); };
  const auto made = [&](std::span<float> a, std::span<float> by_a, std::span<float> b, std::span<float> by_b) {
    const std::vector<Parameter> list = {{"none", {0}, {}, {}}, {"a", {10}, a, by_a}, {"b", {10}, b, by_b}};
    return refusal([&] { AdamW{list}; });
  };
  EXPECT_EQ(made(part(0, 10), part(20, 10), part(0, 10), part(20, 10)),
            "AdamW: values of parameter a and values of parameter b share memory, expected each to have its own");
  EXPECT_EQ(made(part(0, 10), part(20, 10), part(9, 10), part(30, 10)),
            "AdamW: values of parameter a and values of parameter b share memory, expected each to have its own");
  EXPECT_EQ(made(part(10, 10), part(20, 10), part(0, 10), part(11, 10)),
            "AdamW: values of parameter a and gradient of parameter b share memory, expected each to have its own");
  EXPECT_EQ(made(part(0, 10), part(20, 10), part(10, 10), part(20, 10)),
            "AdamW: gradient of parameter a and gradient of parameter b share memory, expected each to have its own");
  AdamW({{"a", {10}, part(10, 10), part(30, 10)}, {"b", {10}, part(0, 10), part(20, 10)}});  // neighbours
}

}  // namespace headlight::test::optimizer_test
