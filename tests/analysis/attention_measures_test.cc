// What softmax weights say, against the twins, on every instruction set.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "analysis/attention_text.h"
#include "gtest/gtest.h"
#include "headlight/analysis/attention.h"
#include "reference/heads.h"
#include "support/guarded.h"
#include "support/isas.h"
#include "support/refusal.h"

namespace headlight::analysis::attention_measures_test {

using test::head_of_weights;
using test::kFloatTolerance;
using test::kTolerance;
using test::Random;
using test::Text;

// Distances are sums of at most 64 float32 terms a lane, and of sixteen lanes.
constexpr double kOfDistance = 70 * 0x1p-24;

using AttentionMeasuresTest = test::EachIsa;
HEADLIGHT_ON_EVERY_ISA(AttentionMeasuresTest);

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
      const double distance = reference::attention_distance(head_of_weights(text.wide, h));
      EXPECT_NEAR(head.distance.value(), distance, kOfDistance * distance);
      for (std::int64_t other = 0; other < 3; ++other) {
        const double truth =
            reference::jensen_shannon(head_of_weights(text.wide, h), head_of_weights(text.wide, other));
        EXPECT_NEAR(measures.jensen_shannon(h, other).value(), truth, kFloatTolerance);
        EXPECT_EQ(measures.jensen_shannon(h, other).value(), measures.jensen_shannon(other, h).value());
      }
    }
  }
}

// Everything but entropies and distances is summed in float64, of the same float32 weights.
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

}  // namespace headlight::analysis::attention_measures_test
