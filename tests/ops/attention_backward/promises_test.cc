// What attention_backward() promises beside its numbers: the same bits however it runs, memory, masks that hold, clear
// refusals.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "baseline/attention_unfused.h"
#include "gtest/gtest.h"
#include "headlight/attention_backward.h"
#include "support/allocation_counter.h"
#include "support/backward_problem.h"
#include "support/guarded.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::attention_backward_promises_test {

using test::AttentionCase;
using test::GradientTensors;
using Problem = test::BackwardProblem;

void expect_same(const GradientTensors<float>& a, const GradientTensors<float>& b) {
  EXPECT_TRUE(test::same_bits(a.query, b.query));
  EXPECT_TRUE(test::same_bits(a.key, b.key));
  EXPECT_TRUE(test::same_bits(a.value, b.value));
  EXPECT_TRUE(test::same_bits(a.bias, b.bias));
}

class AttentionBackwardPromises : public test::EachIsa {};

constexpr const char* kCases[] = {
    "seed=1 B=1 Lq=900 Lk=900 Hq=2 Hkv=1 D=16 Dv=16 causal=top-left dropout=0.25",
    "seed=2 B=2 Lq=300 Lk=1000 Hq=1 Hkv=1 D=8 Dv=24 window=250,20",
    "seed=3 B=1 Lq=1000 Lk=1000 Hq=1 Hkv=1 D=8 Dv=8 causal=top-left query_offsets=0,3,403,404,404,1000",
    "seed=4 B=2 Lq=400 Lk=500 Hq=2 Hkv=2 D=8 Dv=8 key_lengths=450,7 bias=1,2,1,500",
};

// A bias of −FLT_MAX on all keys of every so many rows.
void hide_rows(Problem& problem, std::int64_t every) {
  const auto& shape = problem.in.bias.shape();
  for (std::int64_t i = 0; i < shape[2]; i += every) {
    for (std::int64_t j = 0; j < shape[3]; ++j) problem.in.bias(0, 0, i, j) = std::numeric_limits<float>::lowest();
  }
}

TEST_P(AttentionBackwardPromises, SameBitsForAnyNumberOfThreads) {
  for (const char* line : kCases) {
    SCOPED_TRACE(line);
    Problem problem(AttentionCase::parse(line));
    Engine alone(options(1));
    const GradientTensors<float> expected = problem.both(alone);
    for (const int threads : {2, 5}) {
      Engine engine(options(threads));
      for (int run = 0; run < test::count(3, 1); ++run) expect_same(problem.both(engine), expected);
    }
  }
}

// Every key of every third row carries a bias of −FLT_MAX: such rows are summed in a pass of their own.
TEST_P(AttentionBackwardPromises, SameBitsOfLargeRows) {
  Problem problem(AttentionCase::parse("seed=5 B=1 Lq=500 Lk=900 Hq=2 Hkv=2 D=8 Dv=8 bias=1,1,500,900 sinks=1"));
  hide_rows(problem, 3);
  Engine alone(options(1));
  const GradientTensors<float> expected = problem.both(alone);
  for (const int threads : {2, 5}) {
    Engine engine(options(threads));
    expect_same(problem.both(engine), expected);
  }
  // Whatever other rows are.
  hide_rows(problem, 1);
  const GradientTensors<float> all = problem.both(alone);
  for (std::int64_t i = 0; i < 500; i += 3) {
    for (std::int64_t d = 0; d < 8; ++d) EXPECT_EQ(all.query(0, i, 1, d), expected.query(0, i, 1, d)) << i;
  }
}

// One more product of queries and keys, where each block of keys once walked over all keys of such a row.
TEST_P(AttentionBackwardPromises, SameBitsWhateverIsAskedBeside) {
  Engine engine(options(2));
  Problem problem(AttentionCase::parse("seed=4 B=2 Lq=400 Lk=500 Hq=4 Hkv=2 D=8 Dv=8 bias=1,4,400,500"));
  const GradientTensors<float> all = problem.both(engine);
  GradientTensors<float> apart(problem.in);
  problem.backward(engine, {.query = apart.query});
  problem.backward(engine, {.key = apart.key});
  problem.backward(engine, {.value = apart.value});
  problem.backward(engine, {.bias = apart.bias});
  expect_same(apart, all);
}

TEST_P(AttentionBackwardPromises, AccumulatesOntoWhatIsThere) {
  Engine engine(options());
  Problem problem(AttentionCase::parse("seed=5 B=1 Lq=30 Lk=40 Hq=2 Hkv=1 D=8 Dv=8 key_lengths=33 bias=1,1,30,40"));
  const GradientTensors<float> once = problem.both(engine);
  GradientTensors<float> twice = problem.both(engine);
  auto asked = twice.asked<AttentionGradients>();
  asked.accumulate = true;
  problem.backward(engine, asked);
  const auto is_double = [](const Tensor<float, 4>& a, const Tensor<float, 4>& b) {
    for (std::int64_t n = 0; n < a.size(); ++n) EXPECT_NEAR(a.data()[n], 2 * b.data()[n], 1e-5f);
  };
  is_double(twice.query, once.query);
  is_double(twice.key, once.key);
  is_double(twice.value, once.value);
  is_double(twice.bias, once.bias);
}

TEST_P(AttentionBackwardPromises, TheQueryGradientMayLieWhereOutDoes) {
  Engine engine(options(2));
  Problem problem(AttentionCase::parse("seed=6 B=2 Lq=500 Lk=500 Hq=2 Hkv=2 D=8 Dv=8 causal=bottom-right"));
  const GradientTensors<float> expected = problem.both(engine);
  GradientTensors<float> gradients(problem.in);
  problem.backward(engine, {problem.out, gradients.key, gradients.value});
  EXPECT_TRUE(test::same_bits(problem.out, expected.query));
  EXPECT_TRUE(test::same_bits(gradients.key, expected.key));
}

// The strides of axes of one element lead nowhere.
TEST_P(AttentionBackwardPromises, TheQueryGradientOfOneRowMayLieWhereOutDoes) {
  Engine engine(options());
  Problem problem(AttentionCase::parse("seed=6 B=1 Lq=1 Lk=50 Hq=2 Hkv=2 D=8 Dv=8"));
  const GradientTensors<float> expected = problem.both(engine);
  View<float, 4> query = problem.out;
  query.strides[0] = 1000;
  query.strides[1] = 77;
  problem.backward(engine, {.query = query});
  EXPECT_TRUE(test::same_bits(problem.out, expected.query));
}

TEST_P(AttentionBackwardPromises, NothingPassesAMask) {
  Engine engine(options());
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const char* line : {"seed=7 B=1 Lq=40 Lk=40 Hq=2 Hkv=2 D=20 Dv=12 causal=top-left",
                           "seed=8 B=1 Lq=40 Lk=40 Hq=2 Hkv=2 D=20 Dv=12 mask=1,1,40,40 mask_means=attend",
                           "seed=9 B=1 Lq=40 Lk=40 Hq=2 Hkv=2 D=20 Dv=12 query_lengths=25 key_lengths=30",
                           "seed=10 B=1 Lq=40 Lk=40 Hq=2 Hkv=2 D=20 Dv=12 chunk=7 dropout=0.25"}) {
    SCOPED_TRACE(line);
    for (int which = 0; which < 4; ++which) {
      SCOPED_TRACE(which);
      Problem clean(AttentionCase::parse(line)), spoiled(AttentionCase::parse(line));
      if (which == 0) spoiled.in.query(0, 20, 1, 3) = kNan;
      if (which == 1) spoiled.in.key(0, 20, 1, 3) = kNan;
      if (which == 2) spoiled.in.value(0, 20, 1, 3) = kNan;
      if (which == 3) spoiled.out_gradient(0, 20, 1, 3) = kNan;
      const GradientTensors<float> a = clean.both(engine), b = spoiled.both(engine);
      const auto sees = [&](std::int64_t i, std::int64_t j) {
        return reference::visible(clean.in.options, 40, 40, 0, 1, i, j);
      };
      const auto sees_spoiled_key = [&](std::int64_t i) { return which != 0 && which != 3 && sees(i, 20); };
      // Rows that are spoiled themselves, or by the key; keys that such a row sees.
      const auto row_is_spoiled = [&](std::int64_t i) {
        return which == 0 || which == 3 ? i == 20 : sees_spoiled_key(i);
      };
      for (std::int64_t n = 0; n < 40; ++n) {
        bool key_is_spoiled = false;
        for (std::int64_t i = 0; i < 40; ++i) key_is_spoiled = key_is_spoiled || (row_is_spoiled(i) && sees(i, n));
        for (std::int64_t h = 0; h < 2; ++h) {
          for (std::int64_t d = 0; d < 20; ++d) {
            ASSERT_TRUE((row_is_spoiled(n) && h == 1) || a.query(0, n, h, d) == b.query(0, n, h, d)) << n;
            ASSERT_TRUE((key_is_spoiled && h == 1) || a.key(0, n, h, d) == b.key(0, n, h, d)) << n;
          }
          for (std::int64_t d = 0; d < 12; ++d) {
            ASSERT_TRUE((key_is_spoiled && h == 1) || a.value(0, n, h, d) == b.value(0, n, h, d)) << n;
          }
        }
      }
    }
  }
}

TEST_P(AttentionBackwardPromises, TouchesNothingOutside) {
  Engine engine(options());
  for (const test::Against side : test::kBothSides) {
    for (const std::int64_t dim : {1, 7, 16, 19, 65}) {
      for (const std::int64_t length : {1, 5, 33, 70}) {
        const View<float, 4>::Shape shape = {1, length, 1, dim};
        const std::int64_t count = length * dim;
        test::Guarded<float> query(count, side), key(count, side), value(count, side), out(count, side),
            out_gradient(count, side), log_sum_exp(length, side), query_gradient(count, side),
            key_gradient(count, side), value_gradient(count, side), bias(length * length, side),
            bias_gradient(length * length, side);
        const View<float, 4>::Shape scores = {1, 1, length, length};
        AttentionOptions options;
        options.bias = bias.view<4>(scores);
        options.log_sum_exp = log_sum_exp.view<3>({1, 1, length});
        attention(engine, query.view<4>(shape), key.view<4>(shape), value.view<4>(shape), out.view<4>(shape), options);
        attention_backward(engine, query.view<4>(shape), key.view<4>(shape), value.view<4>(shape), out.view<4>(shape),
                           options.log_sum_exp, out_gradient.view<4>(shape),
                           {query_gradient.view<4>(shape), key_gradient.view<4>(shape), value_gradient.view<4>(shape),
                            bias_gradient.view<4>(scores)},
                           options);
      }
    }
  }
}

TEST_P(AttentionBackwardPromises, AllocatesNothingOnceReserved) {
  Engine engine(options(2));
  test::wait_for_workers(engine);
  for (const char* line : kCases) {
    SCOPED_TRACE(line);
    Problem problem(AttentionCase::parse(line));
    problem.forward(engine);
    GradientTensors<float> gradients(problem.in);
    const AttentionCase& c = problem.c;
    reserve_backward(
        engine, {c.batch, c.query_length, c.key_length, c.query_heads, c.key_value_heads, c.head_dim, c.value_dim});
    const test::AllocationCounter counter;
    problem.backward(engine, gradients.asked<AttentionGradients>());
    const std::int64_t allocations = counter.count();
    EXPECT_EQ(allocations, 0);
  }
}

HEADLIGHT_ON_EVERY_ISA(AttentionBackwardPromises);

TEST(AttentionBackwardArguments, AreRefusedByName) {
  Engine engine;
  Problem problem(AttentionCase::parse("seed=1 B=2 Lq=5 Lk=6 Hq=4 Hkv=2 D=8 Dv=8"));
  problem.forward(engine);
  GradientTensors<float> gradients(problem.in);
  const auto refused = [&](const AttentionGradients& asked) {
    return test::refusal([&] { problem.backward(engine, asked); });
  };
  Tensor<float, 4> wrong({2, 5, 4, 7});
  EXPECT_EQ(refused({.query = wrong}),
            "attention_backward: gradients.query has shape [2, 5, 4, 7], expected [2, 5, 4, 8] (the shape of query)");
  EXPECT_NE(refused({.key = wrong}).find("gradients.key has shape"), std::string::npos);
  EXPECT_NE(refused({.bias = wrong}).find("gradients.bias given without options.bias"), std::string::npos);
  EXPECT_NE(refused({.key = gradients.key, .value = gradients.key}).find("gradients.value"), std::string::npos);
  EXPECT_NE(refused({.key = problem.in.key}).find("gradients.key"), std::string::npos);
  EXPECT_NE(refused({.query = problem.out_gradient}).find("gradients.query"), std::string::npos);
  EXPECT_NE(refused({.query = problem.out, .accumulate = true}).find("accumulate"), std::string::npos);
  Tensor<float, 4> too_wide({2, 6, 2, 9});
  EXPECT_EQ(refused({.value = too_wide}),
            "attention_backward: gradients.value has shape [2, 6, 2, 9], expected [2, 6, 2, 8] (the shape of value)");
  Problem biased(AttentionCase::parse("seed=1 B=2 Lq=5 Lk=6 Hq=4 Hkv=2 D=8 Dv=8 bias=1,4,5,6"));
  biased.forward(engine);
  Tensor<float, 4> short_bias({1, 4, 5, 5});
  EXPECT_EQ(test::refusal([&] { biased.backward(engine, {.bias = short_bias}); }),
            "attention_backward: gradients.bias has shape [1, 4, 5, 5], expected [1, 4, 5, 6] (the shape of bias)");
  for (const float bad : {-0.1f, 1.0f, std::nanf("")}) {
    problem.in.options.dropout.probability = bad;
    EXPECT_NE(refused({.key = gradients.key}).find("attention_backward: dropout.probability is"), std::string::npos);
  }
  problem.in.options.dropout.probability = 0;
  EXPECT_EQ(test::refusal([&] {
              attention_backward(engine, problem.in.query, problem.in.key, problem.in.value, problem.out,
                                 problem.log_sum_exp, wrong, {.key = gradients.key});
            }),
            "attention_backward: out_gradient has shape [2, 5, 4, 7], expected [2, 5, 4, 8] ([B, Lq, Hq, Dv])");
  Tensor<float, 3> rows({2, 4, 6});
  EXPECT_NE(test::refusal([&] {
              attention_backward(engine, problem.in.query, problem.in.key, problem.in.value, problem.out, rows,
                                 problem.out_gradient, {.key = gradients.key});
            }).find("log_sum_exp has shape"),
            std::string::npos);
}

// What the forward pass wrote cannot be left out, as it can for attention_unfused_backward().
TEST(AttentionBackwardArguments, OutAndLogSumExpMustBeGiven) {
  Engine engine;
  Problem problem(AttentionCase::parse("seed=1 B=2 Lq=5 Lk=6 Hq=4 Hkv=2 D=8 Dv=8"));
  problem.forward(engine);
  Tensor<float, 4> gradient(problem.in.query.shape());
  const auto refused = [&](const View<const float, 4>& out, const View<const float, 3>& log_sum_exp) {
    return test::refusal([&] {
      attention_backward(engine, problem.in.query, problem.in.key, problem.in.value, out, log_sum_exp,
                         problem.out_gradient, {.query = gradient});
    });
  };
  EXPECT_EQ(refused({}, {}), "attention_backward: out has shape [0, 0, 0, 0], expected [2, 5, 4, 8] ([B, Lq, Hq, Dv])");
  EXPECT_EQ(refused({}, problem.log_sum_exp),
            "attention_backward: out has shape [0, 0, 0, 0], expected [2, 5, 4, 8] ([B, Lq, Hq, Dv])");
  EXPECT_EQ(refused(problem.out, {}),
            "attention_backward: log_sum_exp has shape [0, 0, 0], expected [2, 4, 5] ([B, Hq, Lq])");
  EXPECT_NE(refused(problem.out, {nullptr, {2, 4, 5}}).find("log_sum_exp of shape [2, 4, 5] has no memory"),
            std::string::npos);
  EXPECT_NE(refused({nullptr, {2, 5, 4, 8}}, problem.log_sum_exp).find("out of shape [2, 5, 4, 8] has no memory"),
            std::string::npos);
}

TEST(AttentionBackwardArguments, NoGradientLiesOverAListOfNumbers) {
  Engine engine;
  Problem problem(AttentionCase::parse("seed=1 B=1 Lq=5 Lk=6 Hq=1 Hkv=1 D=8 Dv=8"));
  problem.forward(engine);
  std::vector<std::int64_t> memory(24);
  const View<float, 4> over(reinterpret_cast<float*>(memory.data()), {1, 6, 1, 8});
  const std::span<const std::int64_t> last(memory.data() + 23, 1);
  problem.in.options.key_lengths = last;
  EXPECT_EQ(test::refusal([&] { problem.backward(engine, {.key = over}); }),
            "attention_backward: gradients.key overlaps key_lengths in memory");
  EXPECT_EQ(test::refusal([&] {
              baseline::attention_unfused_backward(engine, problem.in.query, problem.in.key, problem.in.value,
                                                   problem.out_gradient, {.key = over}, problem.in.options);
            }),
            "attention_unfused_backward: gradients.key overlaps key_lengths in memory");
}

}  // namespace headlight::attention_backward_promises_test
