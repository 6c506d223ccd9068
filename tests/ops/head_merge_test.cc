// Heads weighed and gated: the twin on ragged sizes, guard pages, gates at the ends of their range, any number of
// threads.
#include "ops/head_merge.h"

#include <limits>

#include "ops/guarded_rows.h"
#include "support/isas.h"

namespace headlight::test {
namespace {

using HeadMergeTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(HeadMergeTest);

// Sums of at most 7 terms of size 1, and exponentials of a few ULP.
constexpr double kTolerance = 16 * kUnitRoundoff;

double gate_of(float z) { return 1 / (1 + std::exp(-static_cast<double>(z))); }

TEST_P(HeadMergeTest, WeighsOnRaggedRows) {
  Engine engine(options());
  Random random(1);
  for (const std::int64_t head_dim : kRowLengths) {
    for (const Against side : kBothSides) {
      const std::int64_t heads = random.integer(1, 7);
      const bool shared = random.once_in(2);
      SCOPED_TRACE(testing::Message() << heads << " heads of " << head_dim << ", shared " << shared);
      GuardedRows x(3, heads * head_dim, random.integer(0, 5), side);
      GuardedRows weights(shared ? 1 : 3, heads, random.integer(0, 5), side);
      x.fill(random);
      weights.fill(random);
      const GuardedRows y(3, head_dim, random.integer(0, 5), side);
      ops::weigh_heads(engine, x.const_view(), weights.const_view(), y.view());
      for (std::int64_t n = 0; n < 3; ++n) {
        for (std::int64_t d = 0; d < head_dim; ++d) {
          double truth = 0;
          double size = 0;
          for (std::int64_t head = 0; head < heads; ++head) {
            const double term = static_cast<double>(weights.view()(shared ? 0 : n, head)) *
                                static_cast<double>(x.view()(n, head * head_dim + d));
            truth += term;
            size += std::abs(term);
          }
          EXPECT_NEAR(y.view()(n, d), truth, kTolerance * size);
        }
      }
      EXPECT_TRUE(y.gaps_are_untouched());
    }
  }
}

TEST_P(HeadMergeTest, GatesOnRaggedRows) {
  Engine engine(options());
  Random random(2);
  for (const std::int64_t head_dim : kRowLengths) {
    for (const Against side : kBothSides) {
      const std::int64_t heads = random.integer(1, 5);
      for (const bool by_head : {true, false}) {
        SCOPED_TRACE(testing::Message() << heads << " heads of " << head_dim << ", by head " << by_head);
        GuardedRows x(3, heads * head_dim, 4, side);
        GuardedRows gates(3, by_head ? heads : heads * head_dim, random.integer(0, 5), side);
        x.fill(random);
        gates.fill(random, 8.0f);
        const GuardedRows y(3, heads * head_dim, 4, side);
        ops::gate_heads(engine, x.const_view(), gates.const_view(), heads, y.view());
        for (std::int64_t n = 0; n < 3; ++n) {
          for (std::int64_t e = 0; e < heads * head_dim; ++e) {
            const double gate = gate_of(gates.view()(n, by_head ? e / head_dim : e));
            const double truth = gate * static_cast<double>(x.view()(n, e));
            EXPECT_NEAR(y.view()(n, e), truth, kTolerance * std::abs(truth));
          }
        }
        EXPECT_TRUE(y.gaps_are_untouched());
        ops::gate_heads(engine, x.const_view(), gates.const_view(), heads, x.view());
        EXPECT_TRUE(same_bits(x.view(), y.view())) << "in place";
      }
    }
  }
}

TEST_P(HeadMergeTest, GatesAtTheEndsOfTheirRange) {
  Engine engine(options());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const auto& [z, expected] :
       {std::pair{-kInfinity, 0.0f}, {-200.0f, 0.0f}, {0.0f, 1.5f}, {200.0f, 3.0f}, {kInfinity, 3.0f}}) {
    Tensor<float, 2> x({1, 21}), by_head({1, 1}), by_element({1, 21}), y({1, 21});
    for (float& element : x) element = 3.0f;
    for (Tensor<float, 2>* gates : {&by_head, &by_element}) {
      for (float& gate : *gates) gate = z;
      ops::gate_heads(engine, x.view(), gates->view(), 1, y.view());
      for (const float element : y) EXPECT_EQ(element, expected) << z;
      for (float& gate : *gates) gate = std::nanf("");
      ops::gate_heads(engine, x.view(), gates->view(), 1, y.view());
      for (const float element : y) EXPECT_TRUE(std::isnan(element));
    }
  }
}

TEST_P(HeadMergeTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  Random random(3);
  const Tensor<float, 2> x = random.normal_tensor<2>({700, 6 * 37});
  const Tensor<float, 2> by = random.normal_tensor<2>({700, 6});
  Tensor<float, 2> mean({700, 37}), gated(x.shape());
  Engine one(options(1));
  ops::weigh_heads(one, x.view(), by.view(), mean.view());
  ops::gate_heads(one, x.view(), by.view(), 6, gated.view());
  for (const int threads : {2, 3, 5}) {
    Engine engine(options(threads));
    Tensor<float, 2> other_mean(mean.shape()), other_gated(x.shape());
    ops::weigh_heads(engine, x.view(), by.view(), other_mean.view());
    ops::gate_heads(engine, x.view(), by.view(), 6, other_gated.view());
    EXPECT_TRUE(same_bits(other_mean.view(), mean.view())) << threads;
    EXPECT_TRUE(same_bits(other_gated.view(), gated.view())) << threads;
  }
}

}  // namespace
}  // namespace headlight::test
