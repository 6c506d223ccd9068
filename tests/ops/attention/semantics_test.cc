// What attention() means, one rule a test, small enough to check by eye. (Which row sees which key:
// semantics_visible_test.cc.)
#include <array>
#include <cmath>
#include <limits>

#include "support/attention_routes.h"
#include "support/compare.h"
#include "support/random.h"

namespace headlight::attention_semantics_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();

// Results of size 1 from scores of size 1: a handful of roundings.
constexpr double kTolerance = 16 * test::kUnitRoundoff;

class AttentionSemanticsTest : public test::EachRoute {
 protected:
  // One head of width 1 with the queries 1, so that with the default scale of 1 the scores are the keys: out, one
  // number a row.
  static std::vector<float> attend(std::vector<float> keys, std::vector<float> values, AttentionOptions options = {},
                                   std::int64_t rows = 1, std::vector<float>* log_sum_exp = nullptr) {
    const auto key_length = static_cast<std::int64_t>(keys.size());
    std::vector<float> queries(static_cast<std::size_t>(rows), 1.0f);
    std::vector<float> out(static_cast<std::size_t>(rows));
    if (log_sum_exp != nullptr) {
      log_sum_exp->resize(out.size());
      options.log_sum_exp = View<float, 3>(log_sum_exp->data(), {1, 1, rows});
    }
    GetParam()({queries.data(), {1, rows, 1, 1}}, {keys.data(), {1, key_length, 1, 1}},
               {values.data(), {1, key_length, 1, 1}}, {out.data(), {1, rows, 1, 1}}, options);
    return out;
  }
};

TEST_P(AttentionSemanticsTest, MixesValuesByTheSoftmaxOfTheScores) {
  const double e = std::exp(1.0);
  EXPECT_NEAR(attend({0, 1}, {5, 7})[0], (5 + e * 7) / (1 + e), 7 * kTolerance);
}

TEST_P(AttentionSemanticsTest, ScalesByOneOverTheRootOfTheHeadDim) {
  const std::array<float, 4> query{1, 1, 1, 1};
  const std::array<float, 8> key{0, 0, 0, 0, 1, 1, 1, 1};
  const std::array<float, 2> value{0, 1};
  float out = 0;
  GetParam()({query.data(), {1, 1, 1, 4}}, {key.data(), {1, 2, 1, 4}}, {value.data(), {1, 2, 1, 1}},
             {&out, {1, 1, 1, 1}});
  EXPECT_NEAR(out, 1 / (1 + std::exp(-4 / std::sqrt(4.0))), kTolerance);
}

TEST_P(AttentionSemanticsTest, TakesAnyScaleGiven) {
  EXPECT_NEAR(attend({0, 1}, {0, 1}, {.scale = 3.0f})[0], 1 / (1 + std::exp(-3.0)), kTolerance);
  EXPECT_NEAR(attend({0, 1}, {0, 1}, {.scale = 0.0f})[0], 0.5, kTolerance);
  EXPECT_NEAR(attend({0, 1}, {0, 1}, {.scale = -1.0f})[0], 1 / (1 + std::exp(1.0)), kTolerance);
}

TEST_P(AttentionSemanticsTest, AddsTheBiasToTheScaledScores) {
  const std::array<float, 2> bias{0.5f, -0.25f};
  EXPECT_NEAR(attend({0, 1}, {0, 1}, {.bias = {bias.data(), {1, 1, 1, 2}}, .scale = 2.0f})[0],
              1 / (1 + std::exp(-(2 - 0.25 - 0.5))), kTolerance);
}

TEST_P(AttentionSemanticsTest, GivesTheLogSumExpInNaturalLogarithms) {
  std::vector<float> log_sum_exp;
  attend({1, 2, 3}, {0, 0, 0}, {}, 1, &log_sum_exp);
  EXPECT_NEAR(log_sum_exp[0], std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)), 4 * kTolerance);
}

TEST_P(AttentionSemanticsTest, LetsGroupsOfQueryHeadsShareAKeyValueHead) {
  const std::array<float, 6> query{};
  const std::array<float, 3> key{};
  const std::array<float, 3> value{10, 20, 30};
  std::array<float, 6> out{};
  GetParam()({query.data(), {1, 1, 6, 1}}, {key.data(), {1, 1, 3, 1}}, {value.data(), {1, 1, 3, 1}},
             {out.data(), {1, 1, 6, 1}});
  EXPECT_EQ(out, (std::array<float, 6>{10, 10, 20, 20, 30, 30}));
}

TEST_P(AttentionSemanticsTest, ARowThatSeesNothingGivesZerosAndMinusInfinity) {
  std::vector<float> log_sum_exp;
  const std::vector<float> out = attend({1, 2}, {5, 7}, {.causal = Causal::bottom_right}, 3, &log_sum_exp);
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(log_sum_exp[0], -kInfinity);
  EXPECT_EQ(out[1], 5);
  EXPECT_EQ(log_sum_exp[1], 1);
}

TEST_P(AttentionSemanticsTest, ARowThatSeesNothingIgnoresItsQuery) {
  const std::array<float, 1> query{kNaN};
  const std::array<float, 1> key{1};
  const std::array<float, 1> value{1};
  const std::uint8_t nothing = 0;
  float out = 1;
  GetParam()({query.data(), {1, 1, 1, 1}}, {key.data(), {1, 1, 1, 1}}, {value.data(), {1, 1, 1, 1}},
             {&out, {1, 1, 1, 1}}, {.mask = BooleanMask{{&nothing, {1, 1, 1, 1}}, MaskMeans::attend}});
  EXPECT_EQ(out, 0);
}

TEST_P(AttentionSemanticsTest, NaNInAVisibleKeyOrValueReachesTheRowsThatSeeIt) {
  EXPECT_TRUE(std::isnan(attend({0, kNaN}, {1, 2})[0]));
  EXPECT_TRUE(std::isnan(attend({0, 0}, {kNaN, 2})[0]));
  // Row 0 sees key 0 alone, row 1 both.
  for (const auto& out : {attend({0, kNaN}, {1, 2}, {.causal = Causal::top_left}, 2),
                          attend({0, 0}, {1, kNaN}, {.causal = Causal::top_left}, 2)}) {
    EXPECT_EQ(out[0], 1);
    EXPECT_TRUE(std::isnan(out[1]));
  }
}

TEST_P(AttentionSemanticsTest, NaNInAMaskedKeyOrValueDoesNotLeak) {
  const std::vector<std::int64_t> one{1};
  const std::vector<std::int64_t> offsets{0, 1};
  const std::vector<std::int64_t> key_offsets{0, 1, 2};
  const std::vector<std::int64_t> row_offsets{0, 1, 1};
  const std::array<std::uint8_t, 2> first{1, 0};
  const BooleanMask mask{{first.data(), {1, 1, 1, 2}}, MaskMeans::attend};
  const AttentionOptions masks[] = {{.causal = Causal::top_left},
                                    {.window = {.left = -1, .right = 0}},
                                    {.chunk = 1},
                                    {.key_lengths = one},
                                    {.query_offsets = row_offsets, .key_offsets = key_offsets},
                                    {.mask = mask}};
  for (const AttentionOptions& options : masks) {
    for (const float poison : {kNaN, kInfinity, -kInfinity}) {
      EXPECT_EQ(attend({3, poison}, {5, 1}, options)[0], 5);
      EXPECT_EQ(attend({3, 3}, {5, poison}, options)[0], 5);
      EXPECT_EQ(attend({3, poison}, {5, poison}, options)[0], 5);
    }
  }
}

// Vectors of keys are capped together, those that a row does not see among them.
TEST_P(AttentionSemanticsTest, NaNInAHiddenKeyLeavesTheCapsBesideIt) {
  constexpr std::int64_t kRows = 70, kPoisoned = 35, kLeft = 20;
  std::vector<float> keys(kRows), values(kRows);
  for (std::size_t j = 0; j < keys.size(); ++j) {
    keys[j] = static_cast<float>(j % 7) - 3.0f;
    values[j] = static_cast<float>(j % 5);
  }
  const AttentionOptions options{.window = {.left = kLeft, .right = 0}, .softcap = 1.0f};
  const std::vector<float> clean = attend(keys, values, options, kRows);
  keys[kPoisoned] = kNaN;
  const std::vector<float> poisoned = attend(keys, values, options, kRows);
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto r = static_cast<std::size_t>(row);
    if (row < kPoisoned || row > kPoisoned + kLeft) {
      EXPECT_EQ(poisoned[r], clean[r]) << "row " << row;
    } else {
      EXPECT_TRUE(std::isnan(poisoned[r])) << "row " << row;
    }
  }
}

TEST_P(AttentionSemanticsTest, NaNInTheBiasOfAMaskedKeyDoesNotLeak) {
  const std::array<float, 2> bias{0, kNaN};
  EXPECT_EQ(attend({3, 3}, {5, 7}, {.causal = Causal::top_left, .bias = {bias.data(), {1, 1, 1, 2}}})[0], 5);
  EXPECT_TRUE(std::isnan(attend({3, 3}, {5, 7}, {.bias = {bias.data(), {1, 1, 1, 2}}})[0]));
}

TEST_P(AttentionSemanticsTest, PaddingRowsAreZerosWhateverTheyHold) {
  const std::vector<std::int64_t> one{1};
  std::vector<float> log_sum_exp;
  const std::vector<float> out =
      attend({1, kNaN}, {5, kNaN}, {.query_lengths = one, .key_lengths = one}, 2, &log_sum_exp);
  EXPECT_EQ(out, (std::vector<float>{5, 0}));
  EXPECT_EQ(log_sum_exp, (std::vector<float>{1, -kInfinity}));
}

TEST_P(AttentionSemanticsTest, AVisibleScoreOfPlusInfinityMakesItsRowNaN) {
  EXPECT_TRUE(std::isnan(attend({0, kInfinity}, {1, 2})[0]));
  const std::array<float, 2> bias{0, kInfinity};
  EXPECT_TRUE(std::isnan(attend({0, 0}, {1, 2}, {.bias = {bias.data(), {1, 1, 1, 2}}})[0]));
}

TEST_P(AttentionSemanticsTest, AScoreOfMinusInfinityIsAWeightOfZero) {
  EXPECT_EQ(attend({0, -kInfinity}, {1, 2})[0], 1);
  const std::array<float, 2> bias{-kInfinity, 0};
  EXPECT_EQ(attend({0, 0}, {1, 2}, {.bias = {bias.data(), {1, 1, 1, 2}}})[0], 2);
}

TEST_P(AttentionSemanticsTest, ARowOfMinusInfinityIsARowThatSeesNothing) {
  const std::array<float, 2> bias{-kInfinity, -kInfinity};
  std::vector<float> log_sum_exp;
  EXPECT_EQ(attend({0, 0}, {1, 2}, {.bias = {bias.data(), {1, 1, 1, 2}}}, 1, &log_sum_exp)[0], 0);
  EXPECT_EQ(log_sum_exp[0], -kInfinity);
}

// Many programs write the lowest float where they mean "masked". It is an ordinary, finite score.
TEST_P(AttentionSemanticsTest, TheLowestFloatAsABiasIsAnOrdinaryScore) {
  const std::array<float, 2> one{0, -kLargest};
  EXPECT_EQ(attend({0, 0}, {1, 2}, {.bias = {one.data(), {1, 1, 1, 2}}})[0], 1);
  const std::array<float, 2> both{-kLargest, -kLargest};
  std::vector<float> log_sum_exp;
  EXPECT_NEAR(attend({0, 0}, {1, 2}, {.bias = {both.data(), {1, 1, 1, 2}}}, 1, &log_sum_exp)[0], 1.5, 2 * kTolerance);
  // Its log-sum-exp is as low but not as exact: the tiles count in powers of two, where −FLT_MAX · log2(e) has no
  // float.
  EXPECT_LT(log_sum_exp[0], -0.69f * kLargest);
  EXPECT_GE(log_sum_exp[0], -kLargest);
}

TEST_P(AttentionSemanticsTest, HugeAndTinyScoresNeitherOverflowNorVanish) {
  EXPECT_EQ(attend({1000, -1000}, {1, 2})[0], 1);
  EXPECT_EQ(attend({-1000, 1000}, {1, 2})[0], 2);
  EXPECT_NEAR(attend({30000, 30000}, {1, 2})[0], 1.5, 2 * kTolerance);
  EXPECT_NEAR(attend({-30000, -30000}, {1, 2})[0], 1.5, 2 * kTolerance);
}

// Where neighbouring floats are whole numbers apart, whatever the tiles subtract from a score must be that score.
TEST_P(AttentionSemanticsTest, ScoresBeyondTheWholeNumbersOfFloat) {
  for (const float size : {0x1p23f, 1.7e7f, 1.23e9f, 1e10f, 3e12f, 1.1e30f, kLargest}) {
    std::vector<float> log_sum_exp;
    EXPECT_EQ(attend({size, -size}, {1, 2}, {}, 1, &log_sum_exp)[0], 1) << size;
    // Beyond FLT_MAX · log 2 it is as high, but not as exact: the tiles count in powers of two.
    if (size < 2e38f) {
      EXPECT_NEAR(log_sum_exp[0] / size, 1, kTolerance) << size;
    }
    EXPECT_EQ(attend({-size, size}, {1, 2})[0], 2) << size;
    EXPECT_EQ(attend({0, size}, {1, 2})[0], 2) << size;
    EXPECT_EQ(attend({0, -size}, {1, 2})[0], 1) << size;
    EXPECT_NEAR(attend({size, size}, {1, 2})[0], 1.5, 2 * kTolerance) << size;
    EXPECT_NEAR(attend({-size, -size}, {1, 2})[0], 1.5, 2 * kTolerance) << size;
    // Several key blocks, the large scores in the first and the last.
    std::vector<float> keys(1200, 0.0f);
    std::vector<float> values(1200, 7.0f);
    keys.front() = keys.back() = size;
    values.front() = 1;
    values.back() = 2;
    EXPECT_NEAR(attend(keys, values)[0], 1.5, 2 * kTolerance) << size;
  }
}

TEST_P(AttentionSemanticsTest, EmptyTensorsAreNoSpecialCase) {
  for (const auto& [batch, rows, keys, heads, dims] : {std::array<std::int64_t, 5>{0, 2, 2, 2, 3},
                                                       {2, 0, 2, 2, 3},
                                                       {2, 2, 0, 2, 3},
                                                       {2, 2, 2, 0, 3},
                                                       {2, 2, 2, 2, 0}}) {
    Tensor<float, 4> query({batch, rows, heads, 3});
    Tensor<float, 4> key({batch, keys, heads, 3});
    Tensor<float, 4> value({batch, keys, heads, dims});
    Tensor<float, 4> out({batch, rows, heads, dims});
    Tensor<float, 3> log_sum_exp({batch, heads, rows});
    for (float& element : out) element = 1;
    GetParam()(query, key, value, out, {.log_sum_exp = log_sum_exp});
    for (const float element : out) EXPECT_EQ(element, 0);
    for (const float element : log_sum_exp) {
      if (keys == 0) {
        EXPECT_EQ(element, -kInfinity);
      } else {
        EXPECT_NEAR(element, std::log(static_cast<double>(keys)), kTolerance);
      }
    }
  }
}

HEADLIGHT_ON_EVERY_ROUTE(AttentionSemanticsTest, test::all_routes());

}  // namespace headlight::attention_semantics_test
