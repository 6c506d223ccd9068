// attention_backward() against its plain float64 twin: ragged sizes, every option, every instruction set.
#include "headlight/attention_backward.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "baseline/attention_unfused.h"
#include "gtest/gtest.h"
#include "support/backward_problem.h"
#include "support/gradient_check.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"

namespace headlight::attention_backward_test {

using test::AttentionCase;
using test::AttentionInputs;
using test::GradientTensors;
using test::same_bits;

class AttentionBackwardTest : public test::EachIsa {};

std::int64_t longest_of(const AttentionOptions& options) {
  const auto offsets = options.key_offsets.empty() ? options.query_offsets : options.key_offsets;
  std::int64_t longest = 0;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) longest = std::max(longest, offsets[s + 1] - offsets[s]);
  return longest;
}

void expect_close(Engine& engine, const AttentionCase& c) {
  SCOPED_TRACE(c.line());
  test::BackwardProblem problem(c);
  test::GradientPromise(problem).expect_kept_by(problem.both(engine));
}

TEST_P(AttentionBackwardTest, EveryOptionAtRandom) {
  Engine engine(options(2));
  const int cases = test::count(200, 40);
  for (int seed = 0; seed < cases; ++seed) {
    expect_close(engine, test::random_attention_case(static_cast<std::uint64_t>(seed), seed % 8 == 0 ? 450 : 70));
  }
}

TEST_P(AttentionBackwardTest, EveryHeadDim) {
  Engine engine(options());
  for (std::int64_t dim = 1; dim <= 256; dim += dim < 34 ? 1 : 37) {
    AttentionCase c;
    c.seed = static_cast<std::uint64_t>(dim);
    c.query_length = 5 + dim % 17;
    c.key_length = 1 + dim * 7 % 150;
    c.query_heads = 2;
    c.head_dim = dim;
    c.value_dim = dim % 2 == 0 ? dim : 257 - dim;
    expect_close(engine, c);
  }
}

TEST_P(AttentionBackwardTest, SeveralBlocksOfRowsAndKeys) {
  Engine engine(options(2));
  for (const char* line :
       {"seed=1 B=1 Lq=500 Lk=500 Hq=2 Hkv=1 D=16 Dv=16 causal=top-left dropout=0.25",
        "seed=2 B=1 Lq=300 Lk=900 Hq=1 Hkv=1 D=8 Dv=24 causal=bottom-right window=550,-1",
        "seed=3 B=1 Lq=600 Lk=600 Hq=1 Hkv=1 D=8 Dv=8 chunk=250 dropout=0.5",
        "seed=4 B=1 Lq=640 Lk=640 Hq=1 Hkv=1 D=8 Dv=8 query_offsets=0,3,403,404,640 dropout=0.125",
        "seed=5 B=1 Lq=120 Lk=900 Hq=2 Hkv=1 D=8 Dv=8 mask=1,2,120,900 mask_means=ignore bias=1,2,120,900",
        "seed=6 B=2 Lq=110 Lk=850 Hq=2 Hkv=2 D=9 Dv=7 key_lengths=849,390 bias=1,1,1,850 dropout=0.25",
        "seed=7 B=2 Lq=230 Lk=800 Hq=2 Hkv=1 D=8 Dv=8 causal=bottom-right query_lengths=229,101 key_lengths=800,500 "
        "mask=2,1,1,800 mask_means=attend bias=2,2,230,1",
        "seed=8 B=1 Lq=60 Lk=500 Hq=2 Hkv=1 D=80 Dv=70 mask=1,1,60,500 mask_means=attend bias=1,1,60,500 dropout=0.5",
        "seed=9 B=1 Lq=100 Lk=1210 Hq=2 Hkv=1 D=8 Dv=8 query_offsets=0,40,45,100 key_offsets=0,410,411,1210 "
        "bias=1,1,100,1210 bias_has_infinities=1 dropout=0.25"}) {
    expect_close(engine, AttentionCase::parse(line));
  }
}

// A bias of −FLT_MAX everywhere in a row hides nothing: all its keys weigh alike, and its log-sum-exp does not say so.
TEST_P(AttentionBackwardTest, RowsOfTheLargestScores) {
  Engine engine(options());
  for (const float bias : {-3.40282347e38f, -1e30f, 3e37f}) {
    test::BackwardProblem problem(AttentionCase::parse("seed=5 B=1 Lq=20 Lk=230 Hq=2 Hkv=1 D=8 Dv=8 bias=1,1,20,230"));
    for (std::int64_t j = 0; j < 230; ++j) problem.in.bias(0, 0, 3, j) = problem.in.bias(0, 0, 17, j) = bias;
    test::GradientPromise(problem).expect_kept_by(problem.both(engine));
  }
}

// The same over several blocks of rows and keys, beside sinks of both kinds, and in packed sequences.
TEST_P(AttentionBackwardTest, RowsOfTheLargestScoresOverBlocks) {
  Engine engine(options(2));
  for (const char* line :
       {"seed=6 B=1 Lq=300 Lk=900 Hq=2 Hkv=1 D=8 Dv=8 causal=bottom-right bias=1,1,300,900 sinks=1",
        "seed=7 B=2 Lq=130 Lk=800 Hq=2 Hkv=2 D=9 Dv=7 key_lengths=800,390 bias=1,2,130,800 softcap=2 dropout=0.25",
        "seed=8 B=1 Lq=240 Lk=860 Hq=2 Hkv=1 D=8 Dv=8 query_offsets=0,3,103,140,240 key_offsets=0,410,411,420,860 "
        "bias=1,1,240,860 alibi=1",
        "seed=9 B=1 Lq=120 Lk=900 Hq=2 Hkv=1 D=8 Dv=8 mask=1,2,120,900 mask_means=ignore bias=1,1,120,900"}) {
    for (const float sink : {-3.40282347e38f, 1.0f}) {
      test::BackwardProblem problem(AttentionCase::parse(line));
      const auto& shape = problem.in.bias.shape();
      for (std::int64_t h = 0; h < shape[1]; ++h) {
        for (std::int64_t i = 0; i < shape[2]; ++i) {
          const bool is_large = i % 7 == 3 || (100 < i && i < 170);
          for (std::int64_t j = 0; j < shape[3] && is_large; ++j) problem.in.bias(0, h, i, j) = -3.40282347e38f;
        }
      }
      std::fill(problem.in.sinks.begin(), problem.in.sinks.end(), sink);
      SCOPED_TRACE(line);
      test::GradientPromise(problem).expect_kept_by(problem.both(engine));
    }
  }
}

TEST_P(AttentionBackwardTest, AgreesWithPyTorch) {
  Engine engine(options(2));
  test::GoldenNumbers golden("attention_backward.npy");
  for (const std::string& line : test::golden_lines("attention_backward_cases.txt")) {
    SCOPED_TRACE(line);
    test::BackwardProblem problem(AttentionCase::parse(line));
    const GradientTensors<double> truth = test::golden_gradients(golden, problem.in);
    test::expect_close_gradients(problem.both(engine), test::plain_gradients<float>(problem.in, problem.out_gradient),
                                 truth, test::gradient_yardsticks(problem.in, problem.out_gradient));
  }
}

// In float32, against differences of the float64 twin.
TEST_P(AttentionBackwardTest, FULL_AgreesWithCentralDifferences) {
  Engine engine(options());
  test::BackwardProblem problem(
      AttentionCase::parse("seed=9 B=2 Lq=11 Lk=13 Hq=4 Hkv=2 D=6 Dv=5 causal=bottom-right dropout=0.25"));
  const AttentionInputs& in = problem.in;
  const auto weights = test::converted<double>(problem.out_gradient);
  const GradientTensors<float> gradients = problem.both(engine);
  auto query = test::converted<double>(in.query);
  auto key = test::converted<double>(in.key);
  auto value = test::converted<double>(in.value);
  Tensor<double, 4> out(weights.shape());
  const auto loss = [&] {
    reference::attention<double>(query, key, value, out, in.options);
    return test::weighted_sum(out, weights);
  };
  EXPECT_TRUE(test::gradient_agrees(query, gradients.query, loss, {.tolerance = 2e-6}));
  EXPECT_TRUE(test::gradient_agrees(key, gradients.key, loss, {.tolerance = 2e-6}));
  EXPECT_TRUE(test::gradient_agrees(value, gradients.value, loss, {.tolerance = 2e-6}));
}

// A score that has reached its cap has no derivative, whatever the cap's reciprocal is rounded to.
TEST_P(AttentionBackwardTest, ASaturatedCapGivesNoGradient) {
  Engine engine(options());
  constexpr std::int64_t kKeys = 32, kDim = 16;
  Tensor<float, 4> query({1, 1, 1, kDim}), key({1, kKeys, 1, kDim}), value({1, kKeys, 1, kDim});
  Tensor<float, 4> out(query.shape()), out_gradient(query.shape());
  Tensor<float, 4> query_gradient(query.shape()), key_gradient(key.shape()), value_gradient(value.shape());
  Tensor<float, 3> log_sum_exp({1, 1, 1});
  query(0, 0, 0, 0) = 1024.0f;  // and so is every score
  out_gradient(0, 0, 0, 0) = 1.0f;
  for (std::int64_t j = 0; j < kKeys; ++j) {
    key(0, j, 0, 0) = 1.0f;
    value(0, j, 0, 0) = j % 2 == 0 ? 100.0f : -100.0f;
  }
  for (int cap = 1; cap <= 60; ++cap) {
    AttentionOptions capped{.scale = 1.0f, .softcap = static_cast<float>(cap)};
    capped.log_sum_exp = log_sum_exp;
    attention(engine, query, key, value, out, capped);
    capped.log_sum_exp = {};
    attention_backward(engine, query, key, value, out, log_sum_exp, out_gradient,
                       {.query = query_gradient, .key = key_gradient, .value = value_gradient}, capped);
    for (const float gradient : query_gradient) EXPECT_EQ(gradient, 0.0f) << cap;
    for (const float gradient : key_gradient) EXPECT_EQ(gradient, 0.0f) << cap;
  }
}

TEST_P(AttentionBackwardTest, UnfusedAgrees) {
  Engine engine(options(2));
  const int cases = test::count(60, 15);
  for (int seed = 0; seed < cases; ++seed) {
    const AttentionCase c = test::random_attention_case(static_cast<std::uint64_t>(seed), 70);
    SCOPED_TRACE(c.line());
    const AttentionInputs in(c);
    const Tensor<float, 4> out_gradient = test::out_gradient_of(c);
    GradientTensors<float> again(in), gradients(in);
    again.fill(1e30f);
    baseline::attention_unfused_backward(engine, in.query, in.key, in.value, out_gradient,
                                         again.asked<AttentionGradients>(), in.options);
    test::GradientPromise(in, out_gradient).expect_kept_by(again);

    // The same from the probabilities that the forward pass wrote; whether packed sequences have columns of their own.
    for (const bool own_keys : {false, !in.options.query_offsets.empty()}) {
      Tensor<float, 4> out(out_gradient.shape());
      Tensor<float, 4> kept({c.batch, c.query_heads, c.query_length, own_keys ? longest_of(in.options) : c.key_length});
      AttentionOptions options = in.options;
      options.probabilities = {.per_head = kept, .own_keys = own_keys};
      baseline::attention_unfused(engine, in.query, in.key, in.value, out, options);
      gradients.fill(1e30f);
      baseline::attention_unfused_backward(engine, in.query, in.key, in.value, out_gradient,
                                           gradients.asked<AttentionGradients>(), options);
      EXPECT_TRUE(same_bits(gradients.query, again.query) && same_bits(gradients.key, again.key) &&
                  same_bits(gradients.value, again.value) && same_bits(gradients.bias, again.bias));
    }
  }
}

// Beside the probabilities that are kept, one matrix of scores: dP, which dS overwrites.
TEST_P(AttentionBackwardTest, UnfusedHoldsOneMoreMatrix) {
  Engine engine(options());
  constexpr std::int64_t kLength = 700;
  const AttentionCase c = AttentionCase::parse("seed=3 B=1 Lq=700 Lk=700 Hq=3 Hkv=3 D=8 Dv=8 causal=top-left");
  const AttentionInputs in(c);
  const Tensor<float, 4> out_gradient = test::out_gradient_of(c);
  Tensor<float, 4> out(out_gradient.shape()), kept({1, 3, kLength, kLength});
  AttentionOptions options = in.options;
  options.probabilities.per_head = kept;
  GradientTensors<float> gradients(in);
  baseline::attention_unfused(engine, in.query, in.key, in.value, out, options);
  baseline::attention_unfused_backward(engine, in.query, in.key, in.value, out_gradient,
                                       gradients.asked<AttentionGradients>(), options);
  constexpr std::int64_t kMatrix = sizeof(float) * kLength * kLength;
  EXPECT_GE(engine.scratch_bytes(), kMatrix);
  EXPECT_LT(engine.scratch_bytes(), kMatrix + (1 << 20));  // and what products ask for
}

TEST_P(AttentionBackwardTest, UnfusedRefusesProbabilitiesThatDoNotFit) {
  Engine engine(options());
  const AttentionCase c = AttentionCase::parse("seed=3 B=1 Lq=7 Lk=9 Hq=1 Hkv=1 D=8 Dv=8");
  const AttentionInputs in(c);
  const Tensor<float, 4> out_gradient = test::out_gradient_of(c);
  GradientTensors<float> gradients(in);
  Tensor<float, 4> kept({1, 1, 7, 8});
  AttentionOptions options = in.options;
  const auto words = [&] {
    return test::refusal([&] {
      baseline::attention_unfused_backward(engine, in.query, in.key, in.value, out_gradient,
                                           gradients.asked<AttentionGradients>(), options);
    });
  };
  options.probabilities.per_head = kept;
  EXPECT_EQ(words(),
            "attention_unfused_backward: probabilities.per_head has shape [1, 1, 7, 8], expected [1, 1, 7, 9] "
            "([B, Hq, R, Lk])");
  options.probabilities.per_head = {gradients.key.data(), {1, 1, 7, 9}};
  EXPECT_EQ(words(), "attention_unfused_backward: gradients.key overlaps probabilities.per_head in memory");
}

// One row for all queries, one head's for all: an input may repeat itself.
TEST_P(AttentionBackwardTest, TheOutGradientMayBeBroadcast) {
  Engine engine(options());
  const AttentionCase c = AttentionCase::parse("seed=4 B=2 Lq=7 Lk=9 Hq=2 Hkv=2 D=8 Dv=5");
  const AttentionInputs in(c);
  const std::vector<float> row = {0.5f, -1.0f, 2.0f, 0.25f, 3.0f};
  Tensor<float, 4> written({2, 7, 2, 5});
  for (std::size_t i = 0; i < static_cast<std::size_t>(written.size()); ++i) written.data()[i] = row[i % row.size()];
  GradientTensors<float> expected(in), gradients(in);
  baseline::attention_unfused_backward(engine, in.query, in.key, in.value, written,
                                       expected.asked<AttentionGradients>(), in.options);
  baseline::attention_unfused_backward(engine, in.query, in.key, in.value, {row.data(), {2, 7, 2, 5}, {0, 0, 0, 1}},
                                       gradients.asked<AttentionGradients>(), in.options);
  EXPECT_TRUE(same_bits(gradients.query, expected.query) && same_bits(gradients.key, expected.key) &&
              same_bits(gradients.value, expected.value));
  const Tensor<float, 4> wrong({2, 7, 2, 4});
  EXPECT_EQ(test::refusal([&] {
              baseline::attention_unfused_backward(engine, in.query, in.key, in.value, wrong,
                                                   gradients.asked<AttentionGradients>(), in.options);
            }),
            "attention_unfused_backward: out_gradient has shape [2, 7, 2, 4], expected [2, 7, 2, 5] ([B, Lq, Hq, Dv])");
}

// However short each of them is, many sequences are work for all threads: each has a worker's part of scratch memory.
TEST_P(AttentionBackwardTest, UnfusedSharesPackedSequences) {
  constexpr std::int64_t kSequences = 400, kLength = 40;
  const Tensor<float, 4> x({1, kSequences * kLength, 4, 16});
  Tensor<float, 4> y(x.shape());
  std::vector<std::int64_t> offsets;
  for (std::int64_t s = 0; s <= kSequences; ++s) offsets.push_back(s * kLength);
  const AttentionOptions packed = {.query_offsets = offsets};
  const auto bytes = [&](int threads, bool backward) {
    Engine engine(options(threads));
    if (backward) {
      baseline::attention_unfused_backward(engine, x, x, x, x, {.query = y}, packed);
    } else {
      baseline::attention_unfused(engine, x, x, x, y, packed);
    }
    return engine.scratch_bytes();
  };
  EXPECT_GT(bytes(2, false), bytes(1, false));
  EXPECT_GT(bytes(2, true), bytes(1, true));
}

HEADLIGHT_ON_EVERY_ISA(AttentionBackwardTest);

}  // namespace headlight::attention_backward_test
