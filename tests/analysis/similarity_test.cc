// How alike outputs are: against the twins, and under what must change nothing.
#include "headlight/analysis/similarity.h"

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "reference/heads.h"
#include "support/head_case.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::analysis::similarity_test {

using test::head_of_outputs;
using test::Random;

using SimilarityTest = test::EachIsa;
HEADLIGHT_ON_EVERY_ISA(SimilarityTest);

// Products of centred float32 numbers, of up to n² terms: far from 0 they err by some units in the last place of their
// norms.
constexpr double kTolerance = 4e-6;

struct Outputs {
  Outputs(Random& random, std::int64_t rows, std::int64_t heads, std::int64_t head_dim)
      : x(test::converted<float>(test::head_outputs(random, rows, heads, head_dim))) {}
  [[nodiscard]] Tensor<double, 3> wide() const { return test::converted<double>(x); }
  [[nodiscard]] View<const float, 2> merged() const { return {x.data(), {x.shape()[0], x.shape()[1] * x.shape()[2]}}; }
  // Rows [first, last) of each head.
  [[nodiscard]] std::vector<View<const float, 2>> part(std::int64_t first, std::int64_t last) const {
    std::vector<View<const float, 2>> views;
    for (std::int64_t h = 0; h < x.shape()[1]; ++h) {
      const View<const float, 2> all = head_of_outputs(x, h);
      views.push_back({all.data + first * all.stride(0), {last - first, all.extent(1)}, all.strides});
    }
    return views;
  }
  Tensor<float, 3> x;
};

// Rows that the smallest minibatch does not divide make fewer and larger ones: of three rows nothing can be said.
TEST_P(SimilarityTest, EveryNumberOfRowsMakesMinibatchesOfFourAtLeast) {
  Engine engine(options(1));
  for (std::int64_t rows = 4; rows <= 24; ++rows) {
    test::Random random(static_cast<std::uint64_t>(rows));
    const Tensor<float, 2> x = random.normal_tensor<2>({rows, 3}), y = random.normal_tensor<2>({rows, 3});
    MinibatchCka cka(2, 4);
    const std::array<View<const float, 2>, 2> outputs = {x, y};
    cka.add(engine, outputs);
    EXPECT_TRUE(cka.cka(0, 1).has_value()) << rows << " rows";
  }
}

TEST_P(SimilarityTest, MinibatchCkaAgreesWithTheTwin) {
  Engine engine(options(2));
  Random random(1);
  for (const std::int64_t head_dim : {1, 3, 16, 33}) {
    const std::vector<std::int64_t> offsets = {0, 64, 68, 75, 140};
    const Outputs outputs(random, 140, 3, head_dim);
    MinibatchCka cka(3, 1000);
    for (std::size_t b = 0; b + 1 < offsets.size(); ++b) cka.add(engine, outputs.part(offsets[b], offsets[b + 1]));
    EXPECT_EQ(cka.rows(), 140);
    const Tensor<double, 3> wide = outputs.wide();
    for (std::int64_t a = 0; a < 3; ++a) {
      for (std::int64_t b = 0; b < 3; ++b) {
        const double truth = reference::minibatch_cka(head_of_outputs(wide, a), head_of_outputs(wide, b), offsets);
        EXPECT_NEAR(cka.cka(a, b).value(), truth, kTolerance) << a << ", " << b << " of width " << head_dim;
      }
    }
  }
}

// More heads than a band of the product has columns, each of a width of its own.
TEST_P(SimilarityTest, ManyHeadsOfAnyWidthsAgreeWithTheTwin) {
  Engine engine(options(2));
  Random random(10);
  constexpr std::int64_t kHeads = 100, kRows = 30;
  const Outputs outputs(random, kRows, kHeads, 5);
  std::vector<View<const float, 2>> heads = outputs.part(0, kRows);
  for (std::size_t h = 0; h < heads.size(); ++h) heads[h].shape[1] = 1 + static_cast<std::int64_t>(h % 5);
  MinibatchCka cka(kHeads, 1000);
  cka.add(engine, heads);
  const Tensor<double, 3> wide = outputs.wide();
  const auto head = [&](std::int64_t h) {
    View<const double, 2> view = head_of_outputs(wide, h);
    view.shape[1] = 1 + h % 5;
    return view;
  };
  const std::vector<std::int64_t> offsets = {0, kRows};
  for (const std::int64_t a : {0, 14, 46, 47, 48, 95, 96, 99}) {
    for (const std::int64_t b : {0, 23, 47, 48, 49, 96, 98}) {
      EXPECT_NEAR(cka.cka(a, b).value(), reference::minibatch_cka(head(a), head(b), offsets), kTolerance)
          << a << ", " << b;
    }
  }
}

TEST_P(SimilarityTest, FullBatchCkaAndRankAgreeWithTheTwins) {
  Engine engine(options(2));
  Random random(2);
  for (const std::int64_t head_dim : {1, 5, test::count(48, 20)}) {
    const Outputs outputs(random, 200, 3, head_dim);
    HeadCovariance covariance(3, head_dim);
    const View<const float, 2> all = outputs.merged();
    for (std::int64_t first = 0; first < 200; first += 80) {
      covariance.add(engine,
                     {all.data + first * all.stride(0), {std::min<std::int64_t>(80, 200 - first), all.extent(1)}});
    }
    const Tensor<double, 3> wide = outputs.wide();
    for (std::int64_t a = 0; a < 3; ++a) {
      for (std::int64_t b = 0; b < 3; ++b) {
        const double truth = reference::cka(head_of_outputs(wide, a), head_of_outputs(wide, b));
        EXPECT_NEAR(covariance.cka(a, b).value(), truth, kTolerance) << a << ", " << b << " of width " << head_dim;
      }
    }
    const double truth = reference::effective_rank({wide.data(), {200, 3 * head_dim}});
    EXPECT_NEAR(covariance.effective_rank().value(), truth, 1e-4 * truth);
  }
}

// x Q · factor + shift, Q a rotation.
Tensor<float, 3> turned(Random& random, const Tensor<float, 3>& x, double factor, double shift) {
  const auto [rows, heads, head_dim] = x.shape();
  Tensor<float, 3> result(x.shape());
  for (std::int64_t h = 0; h < heads; ++h) {
    const auto drawn = test::converted<double>(random.normal_tensor<2>({head_dim, head_dim}));
    const Tensor<double, 2> q = reference::gram_schmidt(drawn);
    for (std::int64_t n = 0; n < rows; ++n) {
      for (std::int64_t d = 0; d < head_dim; ++d) {
        double sum = 0;
        for (std::int64_t e = 0; e < head_dim; ++e) sum += static_cast<double>(x(n, h, e)) * q(e, d);
        result(n, h, d) = static_cast<float>(factor * sum + shift);
      }
    }
  }
  return result;
}

TEST_P(SimilarityTest, RotationScaleAndShiftOfAHeadChangeNothing) {
  Engine engine(options());
  Random random(3);
  for (const double factor : {1.0, 1e-3, -400.0}) {
    for (const double shift : {0.0, 3.0}) {
      const Outputs outputs(random, 60, 3, 8);
      Outputs other = Outputs(random, 60, 3, 8);
      other.x = turned(random, outputs.x, factor, factor * shift);
      MinibatchCka before(3), after(3);
      HeadCovariance whole_before(3, 8), whole_after(3, 8);
      for (std::int64_t first = 0; first < 60; first += 30) {
        before.add(engine, outputs.part(first, first + 30));
        after.add(engine, other.part(first, first + 30));
      }
      whole_before.add(engine, outputs.merged());
      whole_after.add(engine, other.merged());
      for (std::int64_t b = 0; b < 3; ++b) {
        EXPECT_NEAR(after.cka(0, b).value(), before.cka(0, b).value(), 2 * kTolerance);
        EXPECT_NEAR(whole_after.cka(0, b).value(), whole_before.cka(0, b).value(), 2 * kTolerance);
      }
      EXPECT_NEAR(before.cka(1, 1).value(), 1.0, kTolerance);
      const double rank = whole_before.effective_rank().value();
      EXPECT_NEAR(whole_after.effective_rank().value(), rank, 2e-4 * rank);
    }
  }
}

// Whatever size a head's outputs have, even one of its own beside others: float32 products would overflow from 2⁶⁴ on
// and vanish below 2⁻⁶⁴, those of CKA's four factors at half of that.
TEST_P(SimilarityTest, SizeChangesNothing) {
  Engine engine(options());
  Random random(8);
  const Outputs outputs(random, 90, 3, 6);
  MinibatchCka before(3);
  HeadCovariance whole_before(3, 6);
  before.add(engine, outputs.part(0, 90));
  whole_before.add(engine, outputs.merged());
  for (const int exponent : {-125, -110, -84, -60, -40, -33, -20, -10, 10, 17, 31, 40, 63, 84, 100, 120}) {
    for (const bool all : {false, true}) {
      SCOPED_TRACE(testing::Message() << "2^" << exponent << (all ? ", all heads" : ", head 1 alone"));
      Outputs scaled = Outputs(random, 90, 3, 6);
      for (std::int64_t n = 0; n < 90; ++n) {
        for (std::int64_t h = 0; h < 3; ++h) {
          const int power = all || h == 1 ? exponent : 0;
          for (std::int64_t d = 0; d < 6; ++d) scaled.x(n, h, d) = std::ldexp(outputs.x(n, h, d), power);
        }
      }
      MinibatchCka after(3);
      HeadCovariance whole_after(3, 6);
      after.add(engine, scaled.part(0, 90));
      whole_after.add(engine, scaled.merged());
      for (std::int64_t a = 0; a < 3; ++a) {
        for (std::int64_t b = 0; b < 3; ++b) {
          EXPECT_NEAR(after.cka(a, b).value(), before.cka(a, b).value(), kTolerance);
          EXPECT_NEAR(whole_after.cka(a, b).value(), whole_before.cka(a, b).value(), kTolerance);
        }
      }
      const double rank = whole_before.effective_rank().value();
      if (all) {
        EXPECT_NEAR(whole_after.effective_rank().value(), rank, 1e-4 * rank);
      }
    }
  }
}

// Outputs that grow or shrink from call to call, from nothing to much more than the first ones.
TEST_P(SimilarityTest, SizesMayChangeOnTheWay) {
  Engine engine(options());
  Random random(9);
  Outputs outputs(random, 120, 2, 4);
  constexpr int kPowers[] = {-90, 0, 3, -100};
  for (std::int64_t n = 0; n < 120; ++n) {
    for (std::int64_t i = 0; i < 8; ++i) {
      float& value = outputs.x(n, i / 4, i % 4);
      value = n < 30 ? 0 : std::ldexp(value - 2, kPowers[n / 30]);
    }
  }
  HeadCovariance covariance(2, 4);
  MinibatchCka cka(2, 30);
  const View<const float, 2> all = outputs.merged();
  for (std::int64_t first = 0; first < 120; first += 30) {
    covariance.add(engine, {all.data + first * 8, {30, 8}});
    if (first > 0) cka.add(engine, outputs.part(first, first + 30));
  }
  const Tensor<double, 3> wide = outputs.wide();
  EXPECT_NEAR(covariance.cka(0, 1).value(), reference::cka(head_of_outputs(wide, 0), head_of_outputs(wide, 1)),
              kTolerance);
  EXPECT_NEAR(covariance.effective_rank().value(), reference::effective_rank({wide.data(), {120, 8}}), 1e-3);
  const std::vector<std::int64_t> offsets = {30, 60, 90, 120};
  EXPECT_NEAR(cka.cka(0, 1).value(),
              reference::minibatch_cka(head_of_outputs(wide, 0), head_of_outputs(wide, 1), offsets), kTolerance);
}

// Two clusters, ±size, so far apart that the difference of two rows is more than a float32 holds, or the sum of one of
// them: mixed, or one after the other, in one call or each in its own.
void check_clusters(Engine& engine, float size, bool sorted, std::int64_t rows_of_call) {
  SCOPED_TRACE(testing::Message() << "±" << size << (sorted ? " sorted, " : " mixed, ") << rows_of_call << " a call");
  constexpr std::int64_t kRows = 160;
  Random random(11);
  Outputs outputs(random, kRows, 2, 4);
  for (std::int64_t n = 0; n < kRows; ++n) {
    const bool above = sorted ? n < kRows / 2 : n * 7919 / 8 % 2 == 0;
    for (std::int64_t i = 0; i < 8; ++i) {
      float& value = outputs.x(n, i / 4, i % 4);
      value = (above ? size : -size) * (1 - 0.125f * std::abs(random.uniform()));
    }
  }
  MinibatchCka cka(2, kRows);
  HeadCovariance covariance(2, 4);
  std::vector<std::int64_t> offsets = {0};
  for (std::int64_t first = 0; first < kRows; first += rows_of_call) {
    cka.add(engine, outputs.part(first, first + rows_of_call));
    covariance.add(engine, {&outputs.x(first, 0, 0), {rows_of_call, 8}});
    offsets.push_back(first + rows_of_call);
  }
  // The twins square squares: a power of two makes room for them, and changes nothing.
  Tensor<double, 3> wide = outputs.wide();
  for (double& value : wide) value *= 0x1p-120;
  const View<const double, 2> a = head_of_outputs(wide, 0), b = head_of_outputs(wide, 1);
  ASSERT_TRUE(cka.cka(0, 1).has_value()) << describe(cka.cka(0, 1).why());
  ASSERT_TRUE(covariance.cka(0, 1).has_value()) << describe(covariance.cka(0, 1).why());
  EXPECT_NEAR(cka.cka(0, 1).value(), reference::minibatch_cka(a, b, offsets), kTolerance);
  EXPECT_NEAR(covariance.cka(0, 1).value(), reference::cka(a, b), kTolerance);
  const double rank = reference::effective_rank({wide.data(), {kRows, 8}});
  EXPECT_NEAR(covariance.effective_rank().value(), rank, 1e-4 * rank);
}

TEST_P(SimilarityTest, FarAwayClustersAreFinite) {
  Engine engine(options());
  for (const float size : {1e37f, 2e38f, std::numeric_limits<float>::max()}) {
    for (const bool sorted : {false, true}) {
      for (const std::int64_t rows_of_call : {160, 80}) check_clusters(engine, size, sorted, rows_of_call);
    }
  }
}

// Heads that have nothing in common: with few rows the biased measure says otherwise, the unbiased one does not.
TEST_P(SimilarityTest, StrangersAreStrangersHoweverFewRows) {
  Engine engine(options());
  Random random(4);
  MinibatchCka unbiased(2);
  double biased = 0;
  for (int batch = 0; batch < 200; ++batch) {
    const Tensor<float, 2> x = random.normal_tensor<2>({8, 12}), y = random.normal_tensor<2>({8, 12});
    unbiased.add(engine, std::array{View<const float, 2>(x), View<const float, 2>(y)});
    biased += reference::cka(test::converted<double>(x), test::converted<double>(y)) / 200;
  }
  EXPECT_LT(std::abs(unbiased.cka(0, 1).value()), 0.05);
  EXPECT_GT(biased, 0.5);
}

TEST_P(SimilarityTest, ThreadsChangeNoBit) {
  Random random(5);
  const Outputs outputs(random, 300, 5, 24);
  Engine one(options(1));
  MinibatchCka expected(5);
  HeadCovariance whole(5, 24);
  expected.add(one, outputs.part(0, 300));
  whole.add(one, outputs.merged());
  for (const int threads : {2, 3}) {
    Engine engine(options(threads));
    MinibatchCka cka(5);
    HeadCovariance covariance(5, 24);
    cka.add(engine, outputs.part(0, 300));
    covariance.add(engine, outputs.merged());
    for (std::int64_t b = 0; b < 5; ++b) {
      EXPECT_EQ(cka.cka(2, b).value(), expected.cka(2, b).value());
      EXPECT_EQ(covariance.cka(2, b).value(), whole.cka(2, b).value());
    }
    EXPECT_EQ(covariance.effective_rank().value(), whole.effective_rank().value());
  }
}

TEST(SimilarityDegenerate, SaysWhyThereIsNoNumber) {
  Engine engine;
  Random random(6);
  Outputs outputs(random, 30, 3, 4);
  for (std::int64_t n = 0; n < 30; ++n) {
    for (std::int64_t d = 0; d < 4; ++d) outputs.x(n, 1, d) = 0.1f * static_cast<float>(d + 1);
  }
  MinibatchCka cka(3);
  HeadCovariance covariance(3, 4);
  EXPECT_EQ(covariance.cka(0, 1).why(), Undefined::no_rows);
  EXPECT_EQ(covariance.effective_rank().why(), Undefined::no_rows);
  cka.add(engine, outputs.part(0, 3));
  EXPECT_EQ(cka.cka(0, 2).why(), Undefined::too_few_rows) << "three rows";
  covariance.add(engine, {outputs.x.data(), {1, 12}});
  EXPECT_EQ(covariance.cka(0, 2).why(), Undefined::too_few_rows) << "one token";
  EXPECT_EQ(covariance.effective_rank().why(), Undefined::too_few_rows);

  cka.add(engine, outputs.part(0, 30));
  covariance.add(engine, outputs.merged());
  EXPECT_EQ(cka.cka(0, 1).why(), Undefined::constant);
  EXPECT_EQ(covariance.cka(1, 0).why(), Undefined::constant);
  EXPECT_TRUE(cka.cka(0, 2).has_value() && covariance.cka(0, 2).has_value());
  EXPECT_EQ(describe(cka.cka(1, 1).why()), "the output is the same in every row");

  HeadCovariance still(1, 4);
  still.add(engine, {&outputs.x(0, 1, 0), {30, 4}, {12, 1}});
  EXPECT_EQ(still.effective_rank().why(), Undefined::constant);

  outputs.x(7, 2, 0) = std::nanf("");
  cka.add(engine, outputs.part(0, 30));
  covariance.add(engine, outputs.merged());
  EXPECT_EQ(cka.cka(0, 2).why(), Undefined::not_finite);
  EXPECT_TRUE(cka.cka(0, 0).has_value()) << "the other head keeps its numbers";
  EXPECT_EQ(covariance.cka(0, 2).why(), Undefined::not_finite);
  EXPECT_EQ(covariance.effective_rank().why(), Undefined::not_finite);
  EXPECT_TRUE(covariance.cka(0, 0).has_value()) << "the other head keeps its numbers";
}

TEST(SimilarityDegenerate, AnInfinityIsNamedWhereverItIs) {
  Engine engine;
  Random random(12);
  for (const float value : {INFINITY, -INFINITY}) {
    for (const std::int64_t row : {0, 7}) {
      Outputs outputs(random, 30, 2, 4);
      outputs.x(row, 1, 2) = value;
      MinibatchCka cka(2);
      HeadCovariance covariance(2, 4);
      cka.add(engine, outputs.part(0, 30));
      covariance.add(engine, outputs.merged());
      EXPECT_EQ(cka.cka(0, 1).why(), Undefined::not_finite);
      EXPECT_EQ(covariance.cka(0, 1).why(), Undefined::not_finite);
      EXPECT_TRUE(cka.cka(0, 0).has_value() && covariance.cka(0, 0).has_value()) << "the other head keeps its numbers";
    }
  }
}

TEST(SimilarityRank, CountsDirections) {
  Engine engine;
  Random random(7);
  // Sixty rows along one line, then in three directions of equal strength.
  Tensor<float, 2> line({60, 6}), three({60, 6});
  for (std::int64_t n = 0; n < 60; ++n) {
    const float along = random.normal();
    for (std::int64_t d = 0; d < 6; ++d) line(n, d) = along * static_cast<float>(d - 2) + 5;
    three(n, n % 3) = n / 3 % 2 == 0 ? 1.0f : -1.0f;
  }
  HeadCovariance of_line(2, 3), of_three(2, 3);
  of_line.add(engine, line);
  of_three.add(engine, three);
  EXPECT_NEAR(of_line.effective_rank().value(), 1.0, 1e-2);
  EXPECT_NEAR(of_three.effective_rank().value(), 3.0, 1e-6);
}

}  // namespace headlight::analysis::similarity_test
