// The gradients of a sum that depends on log_sum_exp, too.
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "gtest/gtest.h"
#include "support/gradient_check.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"
#include "support/typed_backward.h"

namespace headlight::attention_backward_log_sum_exp_test {

using test::AttentionCase;
using test::BackwardTypes;
using test::GradientTensors;
using test::TypedBackward;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class LogSumExpGradient : public test::EachIsaAndFeature {};

// `out` and gradients of float32, so that errors are those of the sums alone.
void expect_close(Engine& engine, AttentionCase c) {
  c.types[3] = NumberType::float32;
  SCOPED_TRACE(c.line());
  TypedBackward call(engine, c, {.out_gradient = c.types[0]}, false);
  test::for_each_error_of_roundings(
      engine, call, 0,
      [](const char* name, const auto& actual, const auto& truth, double allowed, const auto& sizes) {
        EXPECT_TRUE(test::within(actual, truth, allowed, sizes)) << name;
      },
      test::log_sum_exp_gradient_of(c));
}

TEST_P(LogSumExpGradient, EveryOptionAtRandom) {
  Engine engine(options(2));
  for (std::uint64_t seed = 0; seed < test::count<std::uint64_t>(150, 40); ++seed) {
    AttentionCase c = test::random_attention_case(seed, seed % 8 == 0 ? 450 : 70);
    if (seed % 2 == 0) c.types = {};
    expect_close(engine, c);
  }
}

// In float32, against differences of the float64 twin.
TEST_P(LogSumExpGradient, FULL_AgreesWithCentralDifferences) {
  Engine engine(options());
  TypedBackward call(engine,
                     AttentionCase::parse("seed=9 B=2 Lq=11 Lk=13 Hq=4 Hkv=2 D=6 Dv=5 causal=bottom-right softcap=3"),
                     {}, false);
  const test::AttentionInputs& in = call.problem.in;
  const Tensor<float, 3> gradient = test::log_sum_exp_gradient_of(call.problem.c);
  const GradientTensors<float> gradients = call.of_types(engine, gradient.view());
  const auto weights = test::converted<double>(call.problem.out_gradient);
  const auto sum_weights = test::converted<double>(gradient);
  auto query = test::converted<double>(in.query);
  auto key = test::converted<double>(in.key);
  Tensor<double, 4> out(weights.shape());
  Tensor<double, 3> log_sum_exp(sum_weights.shape());
  const auto loss = [&] {
    reference::attention<double>(query, key, test::converted<double>(in.value), out, in.options,
                                 {.log_sum_exp = log_sum_exp});
    return test::weighted_sum(out, weights) + test::weighted_sum(log_sum_exp, sum_weights);
  };
  EXPECT_TRUE(test::gradient_agrees(query, gradients.query, loss, {.tolerance = 2e-6}));
  EXPECT_TRUE(test::gradient_agrees(key, gradients.key, loss, {.tolerance = 2e-6}));
}

// What it is for: gradients through results over parts of the keys, put together, are those of attention over all.
TEST_P(LogSumExpGradient, PartsThatAreMergedHaveTheGradientsOfTheWhole) {
  Engine engine(options());
  constexpr std::int64_t kRows = 20, kKeys = 30, kFirst = 11, kHeads = 2, kDim = 8;
  test::BackwardProblem whole(AttentionCase::parse("seed=3 B=1 Lq=20 Lk=30 Hq=2 Hkv=2 D=8 Dv=8"));
  const GradientTensors<float> expected = whole.both(engine);
  GradientTensors<float> found(whole.in);
  for (const auto& [begin, end] : {std::pair{std::int64_t{0}, kFirst}, std::pair{kFirst, kKeys}}) {
    const auto some = [&, first = begin, count = end - begin](auto view) {
      view.data += first * view.strides[1];
      view.shape[1] = count;
      return view;
    };
    const View<const float, 4> key = some(whole.in.key.view()), value = some(whole.in.value.view());
    Tensor<float, 4> out({1, kRows, kHeads, kDim}), out_gradient(out.shape()), query_gradient(whole.in.query.shape());
    Tensor<float, 3> log_sum_exp({1, kHeads, kRows}), by_log_sum_exp(log_sum_exp.shape());
    attention(engine, whole.in.query, key, value, out, {.log_sum_exp = log_sum_exp});
    // out = Σ_p w_p out_p, w_p = exp(log_sum_exp_p − log_sum_exp): by out_p w_p dO, by log_sum_exp_p
    // w_p Σ_d dO (out_p − out).
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t h = 0; h < kHeads; ++h) {
        const float weight = std::exp(log_sum_exp(0, h, i) - whole.log_sum_exp(0, h, i));
        for (std::int64_t d = 0; d < kDim; ++d) {
          const float gradient = whole.out_gradient(0, i, h, d);
          out_gradient(0, i, h, d) = weight * gradient;
          by_log_sum_exp(0, h, i) += weight * gradient * (out(0, i, h, d) - whole.out(0, i, h, d));
        }
      }
    }
    attention_backward(engine, whole.in.query, key, value, out, log_sum_exp, out_gradient,
                       {query_gradient, some(found.key.view()), some(found.value.view())},
                       {.log_sum_exp_gradient = by_log_sum_exp});
    for (std::int64_t n = 0; n < query_gradient.size(); ++n) found.query.data()[n] += query_gradient.data()[n];
  }
  // Weights and outputs are rounded once more, and again as they are merged.
  const auto sizes = test::gradient_yardsticks(whole.in, whole.out_gradient);
  constexpr double kAllowed = 32 * test::kUnitRoundoff;
  EXPECT_TRUE(
      test::within(found.query.view(), test::converted<double>(expected.query).view(), kAllowed, sizes.query.view()));
  EXPECT_TRUE(test::within(found.key.view(), test::converted<double>(expected.key).view(), kAllowed, sizes.key.view()));
  EXPECT_TRUE(
      test::within(found.value.view(), test::converted<double>(expected.value).view(), kAllowed, sizes.value.view()));
}

TEST_P(LogSumExpGradient, SameBitsForAnyNumberOfThreads) {
  for (const NumberType type : {NumberType::float32, NumberType::bfloat16}) {
    AttentionCase c = AttentionCase::parse("seed=1 B=2 Lq=150 Lk=400 Hq=4 Hkv=2 D=8 Dv=8 causal=bottom-right");
    c.types.fill(type);
    const Tensor<float, 3> gradient = test::log_sum_exp_gradient_of(c);
    Engine alone(options(1));
    TypedBackward call(alone, c, BackwardTypes::all(type), false);
    const GradientTensors<float> expected = call.of_types(alone, gradient.view());
    for (const int threads : {2, 5}) {
      Engine engine(options(threads));
      test::expect_same_gradients(call.of_types(engine, gradient.view()), expected);
    }
    // Zeros have the bits of none.
    const Tensor<float, 3> zeros(gradient.shape());
    test::expect_same_gradients(call.of_types(alone, zeros.view()), call.of_types(alone));
  }
}

// Its log-sum-exp is a constant, so nothing of its gradient goes anywhere; and none of any row to keys that it does not
// see.
TEST_P(LogSumExpGradient, OfARowThatSeesNothingCountsForNothing) {
  Engine engine(options());
  for (const char* line :
       {"seed=1 B=1 Lq=40 Lk=40 Hq=1 Hkv=1 D=8 Dv=8 query_lengths=30 sinks=1",
        "seed=2 B=1 Lq=40 Lk=30 Hq=1 Hkv=1 D=8 Dv=8 causal=bottom-right",
        "seed=3 B=1 Lq=40 Lk=40 Hq=1 Hkv=1 D=8 Dv=8 causal=top-left mask=1,1,40,1 mask_means=attend"}) {
    SCOPED_TRACE(line);
    TypedBackward call(engine, AttentionCase::parse(line), {}, false);
    Tensor<float, 3> gradient = test::log_sum_exp_gradient_of(call.problem.c);
    const GradientTensors<float> clean = call.of_types(engine, gradient.view());
    int blind = 0;
    for (std::int64_t i = 0; i < 40; ++i) {
      if (!std::isinf(call.problem.log_sum_exp(0, 0, i))) continue;
      gradient(0, 0, i) = kNan;
      ++blind;
    }
    EXPECT_GT(blind, 5);
    test::expect_same_gradients(call.of_types(engine, gradient.view()), clean);
  }
  TypedBackward causal(engine, AttentionCase::parse("seed=4 B=1 Lq=40 Lk=40 Hq=1 Hkv=1 D=8 Dv=8 causal=top-left"), {},
                       false);
  Tensor<float, 3> gradient = test::log_sum_exp_gradient_of(causal.problem.c);
  const GradientTensors<float> clean = causal.of_types(engine, gradient.view());
  gradient(0, 0, 20) = kNan;
  const GradientTensors<float> spoiled = causal.of_types(engine, gradient.view());
  for (std::int64_t n = 0; n < 40; ++n) {
    EXPECT_EQ(std::isnan(spoiled.query(0, n, 0, 0)), n == 20) << n;
    EXPECT_EQ(std::isnan(spoiled.key(0, n, 0, 0)), n <= 20) << n;
    if (n <= 20) continue;
    EXPECT_EQ(spoiled.key(0, n, 0, 0), clean.key(0, n, 0, 0)) << n;
  }
  EXPECT_TRUE(test::same_bits(spoiled.value, clean.value));
}

HEADLIGHT_ON_EVERY_FEATURE(LogSumExpGradient);

TEST(LogSumExpGradientArguments, AreRefusedByName) {
  Engine engine;
  TypedBackward call(engine, AttentionCase::parse("seed=1 B=2 Lq=5 Lk=6 Hq=4 Hkv=2 D=8 Dv=8"), {}, false);
  Tensor<float, 4> to(call.problem.in.query.shape());
  const auto refused = [&](const View<const float, 3>& gradient) {
    return test::refusal([&] { call.backward(engine, {.query = to.view()}, gradient); });
  };
  const Tensor<float, 3> wrong({2, 5, 4});
  EXPECT_EQ(refused(wrong.view()),
            "attention_backward: log_sum_exp_gradient has shape [2, 5, 4], expected [2, 4, 5] ([B, Hq, Lq])");
  EXPECT_EQ(refused(View<const float, 3>(to.data(), {2, 4, 5})),
            "attention_backward: gradients.query overlaps log_sum_exp_gradient in memory");
}

}  // namespace headlight::attention_backward_log_sum_exp_test
