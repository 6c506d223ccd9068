// What softmax weights say, against the twins, on every instruction set.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/analysis/attention.h"
#include "reference/heads.h"
#include "support/guarded.h"
#include "support/head_case.h"
#include "support/isas.h"
#include "support/refusal.h"

namespace headlight::analysis {
namespace {

using test::head_of_weights;
using test::Random;

using AttentionMeasuresTest = test::EachIsa;
HEADLIGHT_ON_EVERY_ISA(AttentionMeasuresTest);

// Entropies are summed in float32: a term p ln p errs by some 4 ε p |ln p|, a sum over the vector's lanes and a unit's
// 32 rows by √n ε of itself. With ε = 2⁻²⁴ and at most ln 130 nats a row that is below 16 ε = 1e-6.
constexpr double kFloatTolerance = 16 * 0x1p-24;
constexpr double kTolerance = 1e-9;

// A text's weights as float32, and those in float64 for the twins.
struct Text {
  Text(Random& random, std::int64_t heads, std::int64_t length)
      : weights(test::converted<float>(test::head_weights(random, heads, length))),
        wide(test::converted<double>(weights)) {}
  Tensor<float, 3> weights;
  Tensor<double, 3> wide;
};

TEST_P(AttentionMeasuresTest, AgreeWithTheTwinsAtEveryLength) {
  Engine engine(options(2));
  Random random(1);
  for (std::int64_t length = 1; length <= 70; length += length < 20 ? 1 : 7) {
    const Text text(random, 3, length);
    AttentionMeasures measures(3);
    measures.add(engine, std::array{AttentionText{.weights = text.weights}});
    EXPECT_EQ(measures.rows(), length);
    for (std::int64_t h = 0; h < 3; ++h) {
      SCOPED_TRACE(testing::Message() << "head " << h << " on " << length << " tokens");
      const HeadAttention head = measures.head(h);
      EXPECT_NEAR(head.entropy.value(), reference::entropy(head_of_weights(text.wide, h)), kFloatTolerance);
      EXPECT_NEAR(head.confidence.value(), reference::confidence(head_of_weights(text.wide, h)), kTolerance);
      EXPECT_NEAR(head.distance.value(), reference::attention_distance(head_of_weights(text.wide, h)), kTolerance);
      for (std::int64_t other = 0; other < 3; ++other) {
        const double truth =
            reference::jensen_shannon(head_of_weights(text.wide, h), head_of_weights(text.wide, other));
        EXPECT_NEAR(measures.jensen_shannon(h, other).value(), truth, kFloatTolerance);
        EXPECT_EQ(measures.jensen_shannon(h, other).value(), measures.jensen_shannon(other, h).value());
      }
    }
  }
}

// Everything but entropies is summed in float64, of the same float32 weights.
TEST_P(AttentionMeasuresTest, KnowWhereTheWeightLies) {
  Engine engine(options(2));
  Random random(12);
  for (const std::int64_t length : {2, 3, 9, 17, 40, 71}) {
    const Text text(random, 2, length);
    const std::vector<std::int64_t> separators = {length / 2, length - 1};
    std::vector<std::int64_t> tokens;
    for (std::int64_t token = length / 3; token < length; ++token) tokens.push_back(token);
    const auto rows = static_cast<std::int64_t>(tokens.size());
    AttentionMeasures measures(2);
    const View<const float, 3> asked(&text.weights(0, tokens[0], 0), {2, rows, length}, {length * length, length, 1});
    measures.add(engine, std::array{AttentionText{asked, tokens, separators}});
    for (std::int64_t h = 0; h < 2; ++h) {
      SCOPED_TRACE(testing::Message() << "head " << h << " on " << length << " tokens");
      const reference::Places truth =
          reference::places(View<const double, 2>(&text.wide(h, tokens[0], 0), {rows, length}), tokens, separators,
                            HeadAttention::kLocalReach, HeadAttention::kProfileReach);
      const HeadAttention head = measures.head(h);
      EXPECT_EQ(head.rows, rows);
      EXPECT_NEAR(head.peaks_previous.value(), truth.peaks_previous, kTolerance);
      EXPECT_NEAR(head.peaks_next.value(), truth.peaks_next, kTolerance);
      EXPECT_NEAR(head.peaks_itself.value(), truth.peaks_itself, kTolerance);
      EXPECT_NEAR(head.peaks_first.value(), truth.peaks_first, kTolerance);
      EXPECT_NEAR(head.peaks_separator.value(), truth.peaks_separator, kTolerance);
      EXPECT_NEAR(head.weight_first.value(), truth.weight_first, kTolerance);
      EXPECT_NEAR(head.weight_separators.value(), truth.weight_separators, kTolerance);
      EXPECT_NEAR(head.weight_local.value(), truth.weight_local, kTolerance);
      EXPECT_NEAR(head.even_no_op.value(), truth.even_no_op, kTolerance);
      EXPECT_NEAR(head.even_local.value(), truth.even_local, kTolerance);
      for (std::size_t n = 0; n < truth.profile.size(); ++n) {
        EXPECT_NEAR(head.profile[n], truth.profile[n], kTolerance) << n;
      }
      // What kinds() says of them.
      const double no_op = truth.weight_first + truth.weight_separators;
      const HeadKinds kinds = head.kinds({.positional = 0.3, .local = 0.1, .no_op = 0.1, .times_even = 1.05});
      if (rows < 10) continue;
      EXPECT_EQ(kinds.first_token, truth.peaks_first >= 0.3);
      EXPECT_EQ(kinds.next_token, truth.peaks_next >= 0.3);
      EXPECT_EQ(kinds.local, truth.weight_local >= std::max(0.1, 1.05 * truth.even_local));
      EXPECT_EQ(kinds.no_op, no_op >= std::max(0.1, 1.05 * truth.even_no_op));
    }
  }
}

TEST_P(AttentionMeasuresTest, ReadsNothingBesideTheWeights) {
  Engine engine(options());
  Random random(5);
  for (const std::int64_t length : {1, 3, 15, 16, 17, 33, 50}) {
    for (const test::Against side : test::kBothSides) {
      const Text text(random, 2, length);
      const test::Guarded<float> guarded(2 * length * length, side);
      std::copy(text.weights.begin(), text.weights.end(), guarded.data());
      AttentionMeasures measures(2), expected(2);
      measures.add(engine, std::array{AttentionText{.weights = guarded.view<3>({2, length, length})}});
      expected.add(engine, std::array{AttentionText{.weights = text.weights}});
      EXPECT_EQ(measures.jensen_shannon(0, 1).value(), expected.jensen_shannon(0, 1).value());
    }
  }
}

// Texts in one call or many, on any number of threads: the same bits. And the mean over all rows.
TEST_P(AttentionMeasuresTest, TextsComeInAnyPortions) {
  Random random(2);
  std::vector<Text> texts;
  for (const std::int64_t length : {40, 1, 100, 7}) texts.emplace_back(random, 4, length);
  std::vector<AttentionText> all;
  for (const Text& text : texts) all.push_back({.weights = text.weights});
  Engine one(options(1));
  AttentionMeasures expected(4);
  for (const AttentionText& text : all) expected.add(one, {&text, 1});
  for (const int threads : {1, 2, 3}) {
    Engine engine(options(threads));
    AttentionMeasures measures(4);
    measures.add(engine, all);
    for (std::int64_t h = 0; h < 4; ++h) {
      EXPECT_EQ(measures.head(h).entropy.value(), expected.head(h).entropy.value());
      EXPECT_EQ(measures.head(h).distance.value(), expected.head(h).distance.value());
      EXPECT_EQ(measures.jensen_shannon(0, h).value(), expected.jensen_shannon(0, h).value());
    }
  }
  double sum = 0;
  for (const Text& text : texts) {
    sum += reference::entropy(head_of_weights(text.wide, 2)) * static_cast<double>(text.wide.shape()[1]);
  }
  EXPECT_NEAR(expected.head(2).entropy.value(), sum / 148, kFloatTolerance);
}

TEST_P(AttentionMeasuresTest, DivergenceGoesFromNothingToLnTwo) {
  Engine engine(options());
  Random random(3);
  const Tensor<float, 3> one = test::converted<float>(test::head_weights(random, 1, 37));
  Tensor<float, 3> weights({4, 37, 37});
  for (std::int64_t i = 0; i < 37; ++i) {
    for (std::int64_t j = 0; j < 37; ++j) weights(0, i, j) = weights(1, i, j) = one(0, i, j);
    weights(2, i, i) = weights(3, i, (i + 1) % 37) = 1;
  }
  AttentionMeasures measures(4);
  measures.add(engine, std::array{AttentionText{.weights = weights}});
  EXPECT_EQ(measures.jensen_shannon(0, 1).value(), 0.0) << "heads that agree";
  EXPECT_NEAR(measures.jensen_shannon(2, 3).value(), std::log(2.0), kFloatTolerance) << "heads that never meet";
  EXPECT_EQ(measures.head(2).entropy.value(), 0.0);
  // Which key stands where does not matter to it.
  Tensor<float, 3> shuffled({4, 37, 37});
  for (std::int64_t h = 0; h < 4; ++h) {
    for (std::int64_t i = 0; i < 37; ++i) {
      for (std::int64_t j = 0; j < 37; ++j) shuffled(h, i, j * 5 % 37) = weights(h, i, j);
    }
  }
  AttentionMeasures again(4);
  again.add(engine, std::array{AttentionText{.weights = shuffled}});
  EXPECT_NEAR(again.jensen_shannon(0, 2).value(), measures.jensen_shannon(0, 2).value(), kFloatTolerance);
}

// Weights of one sort: row i has `weight` at its target, and the rest evenly on all.
Tensor<float, 3> pointing(std::int64_t length, float weight, const std::vector<std::int64_t>& targets) {
  Tensor<float, 3> weights({1, length, length});
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t j = 0; j < length; ++j) weights(0, i, j) = (1 - weight) / static_cast<float>(length);
    weights(0, i, targets[static_cast<std::size_t>(i)]) += weight;
  }
  return weights;
}

TEST(AttentionKinds, AreKnownByWhereTheWeightLies) {
  Engine engine;
  const std::array<std::int64_t, 1> separators = {5};
  const std::array<std::int64_t, 4> words = {1, 2, 3, 4};
  const auto measure = [&](float weight, const std::vector<std::int64_t>& targets) {
    const Tensor<float, 3> all = pointing(6, weight, targets);
    AttentionMeasures measures(1);
    const View<const float, 3> rows(&all(0, 1, 0), {1, 4, 6}, {36, 6, 1});
    const AttentionText text{rows, words, separators};
    measures.add(engine, std::array{text, text, text});
    return measures.head(0);
  };
  const HeadAttention previous = measure(0.7f, {0, 0, 1, 2, 3, 4});
  EXPECT_EQ(previous.peaks_previous.value(), 1.0);
  EXPECT_EQ(previous.peaks_first.value(), 0.25);
  EXPECT_NEAR(previous.profile[HeadAttention::kProfileReach - 1], 0.75, 1e-6);
  EXPECT_TRUE(previous.kinds().previous_token);
  EXPECT_FALSE(previous.kinds().next_token || previous.kinds().first_token || previous.kinds().no_op);
  EXPECT_TRUE(measure(0.2f, {1, 2, 3, 4, 5, 5}).kinds().next_token);
  const HeadAttention itself = measure(0.9f, {0, 1, 2, 3, 4, 5});
  EXPECT_NEAR(itself.even_local.value(), (4 + 5 + 5 + 4) / 24.0, kTolerance);
  EXPECT_NEAR(itself.weight_local.value(), 0.9 + 0.1 * 18 / 24, 1e-6);
  EXPECT_FALSE(itself.kinds().local) << "six tokens are too few to tell";
  EXPECT_TRUE(itself.kinds({.times_even = 1.2}).local);
  const HeadAttention first = measure(0.9f, {0, 0, 0, 0, 0, 0});
  EXPECT_TRUE(first.kinds().first_token && first.kinds().no_op);
  EXPECT_FALSE(first.kinds().separator);
  const HeadAttention end = measure(0.3f, {5, 5, 5, 5, 5, 5});
  EXPECT_TRUE(end.kinds().separator);
  EXPECT_FALSE(end.kinds().no_op);
  EXPECT_TRUE(end.kinds({.no_op = 0.5}).no_op);
  EXPECT_NEAR(end.weight_separators.value(), 0.3 + 0.7 / 6, 1e-6);
  EXPECT_NEAR(end.weight_first.value(), 0.7 / 6, 1e-6);
  // Two of ten rows elsewhere are too many.
  EXPECT_FALSE(measure(0.7f, {0, 0, 1, 2, 1, 4}).kinds().previous_token);
}

TEST(AttentionDegenerate, SaysWhyThereIsNoNumber) {
  Engine engine;
  AttentionMeasures measures(2);
  EXPECT_EQ(measures.head(1).entropy.why(), Undefined::no_rows);
  EXPECT_EQ(measures.jensen_shannon(0, 1).why(), Undefined::no_rows);
  EXPECT_FALSE(measures.head(0).kinds().previous_token);
  Tensor<float, 3> one({2, 1, 1});
  one(0, 0, 0) = one(1, 0, 0) = 1;
  measures.add(engine, std::array{AttentionText{.weights = View<const float, 3>(one.data(), {2, 0, 1})}});
  EXPECT_EQ(measures.head(1).distance.why(), Undefined::no_rows);
  measures.add(engine, std::array{AttentionText{.weights = one}});
  EXPECT_EQ(measures.head(0).entropy.value(), 0.0) << "one token looks at itself";
  EXPECT_EQ(measures.jensen_shannon(0, 1).value(), 0.0);
  one(1, 0, 0) = std::nanf("");
  measures.add(engine, std::array{AttentionText{.weights = one}});
  EXPECT_EQ(measures.head(1).entropy.why(), Undefined::not_finite);
  EXPECT_EQ(measures.jensen_shannon(0, 1).why(), Undefined::not_finite);
  EXPECT_EQ(measures.head(0).confidence.value(), 1.0) << "the other head keeps its numbers";
  EXPECT_THROW((void)measures.head(1).entropy.value(), std::logic_error);
}

// Texts of one head, the same row for every token.
AttentionMeasures same_rows(std::int64_t texts, const std::vector<float>& row) {
  Engine engine;
  const auto length = static_cast<std::int64_t>(row.size());
  Tensor<float, 3> weights({1, length, length});
  for (std::int64_t i = 0; i < length; ++i) std::copy(row.begin(), row.end(), &weights(0, i, 0));
  AttentionMeasures measures(1);
  for (std::int64_t n = 0; n < texts; ++n) measures.add(engine, std::array{AttentionText{.weights = weights}});
  return measures;
}

TEST(AttentionDegenerate, EvenAttentionLooksNowhere) {
  for (const std::size_t length : {2u, 6u, 31u}) {
    const HeadAttention even = same_rows(10, std::vector<float>(length, 1 / static_cast<float>(length))).head(0);
    EXPECT_NEAR(even.entropy.value(), std::log(static_cast<double>(length)), kFloatTolerance);
    EXPECT_EQ(even.peaks_first.why(), Undefined::even);
    EXPECT_EQ(even.peaks_previous.why(), Undefined::even);
    const HeadKinds kinds = even.kinds();
    EXPECT_EQ(kinds.why, Undefined::none);
    EXPECT_FALSE(kinds.first_token || kinds.previous_token || kinds.next_token || kinds.local || kinds.no_op);
  }
  // Two that are equal, or differ by rounding, are no peak either; one that is a little larger is.
  EXPECT_EQ(same_rows(10, {0.4f, 0.4f, 0.2f}).head(0).peaks_first.why(), Undefined::even);
  EXPECT_EQ(same_rows(10, {0.4f, std::nextafter(0.4f, 0.0f), 0.2f}).head(0).peaks_first.why(), Undefined::even);
  EXPECT_EQ(same_rows(10, {0.4001f, 0.4f, 0.1999f}).head(0).peaks_first.value(), 1.0);
  EXPECT_EQ(same_rows(20, {1.0f}).head(0).peaks_first.why(), Undefined::even) << "one token has nowhere else to look";
}

TEST(AttentionDegenerate, ARowThatSeesNothingIsPassedOver) {
  Engine engine;
  Random random(7);
  const Text text(random, 3, 40);
  // Head 1 sees nothing from every third row, head 2 from any.
  Tensor<float, 3> weights = test::converted<float>(text.wide);
  Tensor<double, 3> seeing({3, 40, 40});
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    for (std::int64_t j = 0; j < 40; ++j) {
      if (i % 3 == 0) weights(1, i, j) = 0;
      weights(2, i, j) = 0;
      for (std::int64_t h = 0; h < 2; ++h) seeing(h, kept, j) = static_cast<double>(weights(h, i, j));
    }
    kept += i % 3 == 0 ? 0 : 1;
  }
  AttentionMeasures measures(3);
  measures.add(engine, std::array{AttentionText{.weights = weights}});
  EXPECT_EQ(measures.head(0).rows, 40);
  EXPECT_EQ(measures.head(1).rows, kept);
  const auto rows_of = [&](std::int64_t h) { return View<const double, 2>(&seeing(h, 0, 0), {kept, 40}); };
  EXPECT_NEAR(measures.head(1).entropy.value(), reference::entropy(rows_of(1)), kFloatTolerance);
  EXPECT_NEAR(measures.head(1).confidence.value(), reference::confidence(rows_of(1)), kTolerance);
  EXPECT_NEAR(measures.jensen_shannon(0, 1).value(), reference::jensen_shannon(rows_of(0), rows_of(1)),
              kFloatTolerance);
  EXPECT_EQ(measures.head(2).peaks_first.why(), Undefined::zero);
  EXPECT_EQ(measures.head(2).kinds().why, Undefined::zero);
  EXPECT_EQ(measures.jensen_shannon(1, 2).why(), Undefined::zero);
  EXPECT_EQ(measures.jensen_shannon(2, 2).why(), Undefined::zero);
}

TEST(AttentionDegenerate, RowsThatAreNoWeightsAreNamed) {
  Engine engine;
  Random random(8);
  const Text text(random, 2, 12);
  const auto spoilt = [&](float factor, float added) {
    Tensor<float, 3> weights = test::converted<float>(text.wide);
    for (std::int64_t j = 0; j < 12; ++j) weights(1, 5, j) = weights(1, 5, j) * factor + (j == 3 ? added : 0);
    AttentionMeasures measures(2);
    measures.add(engine, std::array{AttentionText{.weights = weights}});
    EXPECT_TRUE(measures.head(0).entropy.has_value()) << "the other head keeps its numbers";
    EXPECT_EQ(measures.jensen_shannon(0, 1).why(), measures.head(1).entropy.why());
    EXPECT_EQ(measures.head(1).kinds().why, measures.head(1).peaks_first.why());
    return measures.head(1);
  };
  EXPECT_EQ(spoilt(3, 0).entropy.why(), Undefined::not_weights);
  EXPECT_EQ(spoilt(0.9f, 0).distance.why(), Undefined::not_weights);
  EXPECT_EQ(spoilt(0.5f, -2).peaks_next.why(), Undefined::not_weights);
  EXPECT_EQ(spoilt(0, 1e-30f).entropy.why(), Undefined::not_weights);
  EXPECT_EQ(spoilt(1, std::nanf("")).confidence.why(), Undefined::not_finite);
  EXPECT_EQ(spoilt(1, INFINITY).weight_local.why(), Undefined::not_finite);
  EXPECT_TRUE(spoilt(1.0005f, 0).entropy.has_value()) << "what 16 bits leave";
  // Their sum is 1, and one of them is below 0.
  EXPECT_EQ(same_rows(10, {1.5f, -0.5f}).head(0).entropy.why(), Undefined::not_weights);
}

TEST(AttentionKinds, NeedTenRows) {
  Engine engine;
  const Tensor<float, 3> all = pointing(6, 0.8f, {0, 0, 1, 2, 3, 4});
  const std::array<std::int64_t, 1> second = {1};
  AttentionMeasures one(1);
  one.add(engine, std::array{AttentionText{{&all(0, 1, 0), {1, 1, 6}, {36, 6, 1}}, second}});
  EXPECT_EQ(one.head(0).peaks_previous.value(), 1.0);
  EXPECT_EQ(one.head(0).peaks_first.value(), 1.0) << "which of both, one row does not say";
  EXPECT_EQ(one.head(0).kinds().why, Undefined::too_few_rows);
  EXPECT_FALSE(one.head(0).kinds().previous_token || one.head(0).kinds().first_token);
  EXPECT_TRUE(one.head(0).kinds({.fewest_rows = 1}).previous_token);
  AttentionMeasures more(1);
  const std::array<std::int64_t, 3> later = {2, 3, 4};
  for (int text = 0; text < 4; ++text) {
    EXPECT_EQ(more.head(0).kinds().previous_token, false) << text;
    more.add(engine, std::array{AttentionText{{&all(0, 2, 0), {1, 3, 6}, {36, 6, 1}}, later}});
  }
  EXPECT_TRUE(more.head(0).kinds().previous_token);
  EXPECT_EQ(more.head(0).kinds().why, Undefined::none);
}

// Which key stands where does not matter to how sharp a row is.
TEST_P(AttentionMeasuresTest, EntropyAndConfidenceDoNotSeeAPermutation) {
  Engine engine(options());
  Random random(9);
  for (const std::int64_t length : {2, 7, 16, 45, 130}) {
    const Text text(random, 2, length);
    Tensor<float, 3> shuffled({2, length, length});
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 0; i < length; ++i) {
        for (std::int64_t j = 0; j < length; ++j) {
          shuffled(h, i, (j * (length - 1) + i) % length) = text.weights(h, i, j);
        }
      }
    }
    AttentionMeasures before(2), after(2);
    before.add(engine, std::array{AttentionText{.weights = text.weights}});
    after.add(engine, std::array{AttentionText{.weights = shuffled}});
    for (std::int64_t h = 0; h < 2; ++h) {
      EXPECT_NEAR(after.head(h).entropy.value(), before.head(h).entropy.value(), kFloatTolerance);
      EXPECT_EQ(after.head(h).confidence.value(), before.head(h).confidence.value());
    }
    EXPECT_NEAR(after.jensen_shannon(0, 1).value(), before.jensen_shannon(0, 1).value(), kFloatTolerance);
  }
}

TEST(AttentionArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  AttentionMeasures measures(2, false);
  Tensor<float, 3> weights({2, 3, 3});
  const std::array<std::int64_t, 3> rows = {0, 1, 3};
  const std::array<std::int64_t, 1> separators = {-1};
  const auto refused = [&](const AttentionText& text) {
    return test::refusal([&] { measures.add(engine, {&text, 1}); });
  };
  EXPECT_EQ(refused({.weights = Tensor<float, 3>({3, 3, 3})}),
            "AttentionMeasures: weights of text 0 have shape [3, 3, 3], expected [2, R, L] with 0 < L < 2^24");
  EXPECT_EQ(refused({.weights = weights, .rows = rows}),
            "AttentionMeasures: rows of text 0 holds token 3, expected 0 to 2");
  EXPECT_EQ(refused({.weights = weights, .rows = std::span(rows).first(2)}),
            "AttentionMeasures: rows of text 0 has 2 entries, expected one for each of 3 rows");
  EXPECT_EQ(refused({.weights = weights, .separators = separators}),
            "AttentionMeasures: separators of text 0 holds token -1, expected 0 to 2");
  EXPECT_EQ(test::refusal([&] { (void)measures.head(2); }), "AttentionMeasures: head is 2, expected 0 to 1");
  EXPECT_NE(test::refusal([&] { (void)measures.jensen_shannon(0, 1); }), "");
  EXPECT_NE(test::refusal([] { AttentionMeasures{0}; }), "");
  for (const bool pairs : {false, true}) {
    EXPECT_EQ(test::refusal([&] { AttentionMeasures(std::int64_t{1} << 62, pairs); }),
              "AttentionMeasures: heads is 4611686018427387904, expected 1 to 1048575");
  }
}

}  // namespace
}  // namespace headlight::analysis
