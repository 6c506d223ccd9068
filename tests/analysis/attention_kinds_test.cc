// What kind a head is of, and why there is none, or no number, where attention is no attention.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "analysis/attention_text.h"
#include "gtest/gtest.h"
#include "headlight/analysis/attention.h"
#include "reference/heads.h"

namespace headlight::analysis::attention_kinds_test {

using test::kFloatTolerance;
using test::kTolerance;
using test::Random;
using test::Text;

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
    // A float32 sum of as many terms; without vectors, one after the other.
    const double entropy = std::log(static_cast<double>(length));
    EXPECT_NEAR(even.entropy.value(), entropy, kFloatTolerance + entropy * static_cast<double>(length) * 0x1p-24);
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
  EXPECT_EQ(same_rows(10, {3e38f, 3e38f}).head(0).entropy.why(), Undefined::not_weights)
      << "only their sum is infinite";
  EXPECT_TRUE(spoilt(1.0005f, 0).entropy.has_value()) << "what 16 bits leave";
  // Their sum is 1, and one of them is below 0.
  EXPECT_EQ(same_rows(10, {1.5f, -0.5f}).head(0).entropy.why(), Undefined::not_weights);
}

}  // namespace headlight::analysis::attention_kinds_test
