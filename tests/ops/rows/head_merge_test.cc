// Heads weighed and gated: the twin on ragged sizes, guard pages, gates at the ends of their range, any number of
// threads.
#include "ops/rows/head_merge.h"

#include <limits>

#include "support/guarded_rows.h"
#include "support/isas.h"

namespace headlight::test::head_merge_test {

using HeadMergeTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(HeadMergeTest);

// Sums of at most 7 terms of size 1, and exponentials of a few ULP.
constexpr double kTolerance = 16 * kUnitRoundoff;

double gate_of(float z) { return 1 / (1 + std::exp(-static_cast<double>(z))); }

// Against sums in float64, where x's gradient has a place of its own and where it takes that of x.
void check_backward(Engine& engine, Random& random, Against side, std::int64_t heads, std::int64_t head_dim,
                    std::string_view how) {
  const bool gates = how.starts_with("gated"), shared = how == "weighed alike", by_element = how == "gated by element";
  const std::int64_t width = heads * head_dim, columns = by_element ? width : heads;
  GuardedRows x(3, width, 4, side), by(shared ? 1 : 3, columns, random.integer(0, 5), side);
  GuardedRows y_gradient(3, gates ? width : head_dim, random.integer(0, 5), side);
  for (GuardedRows* rows : {&x, &by, &y_gradient}) rows->fill(random);
  const GuardedRows x_gradient(3, width, 4, side), by_gradient(3, columns, random.integer(0, 5), side);
  const auto run = [&](View<float, 2> to) {
    if (gates) {
      ops::gate_heads_backward(engine, x.const_view(), by.const_view(), heads, y_gradient.const_view(), to,
                               by_gradient.view());
    } else {
      ops::weigh_heads_backward(engine, x.const_view(), by.const_view(), y_gradient.const_view(), to,
                                by_gradient.view());
    }
  };
  run(x_gradient.view());
  for (std::int64_t n = 0; n < 3; ++n) {
    std::vector<double> sums(static_cast<std::size_t>(columns)), sizes(sums.size());
    for (std::int64_t e = 0; e < width; ++e) {
      const std::int64_t column = by_element ? e : e / head_dim;
      const float z = by.view()(shared ? 0 : n, column);
      const double factor = gates ? gate_of(z) : static_cast<double>(z);
      const auto gradient = static_cast<double>(y_gradient.view()(n, gates ? e : e % head_dim));
      EXPECT_NEAR(x_gradient.view()(n, e), factor * gradient, kTolerance * std::abs(factor * gradient));
      const double slope = gates ? factor * (1 - factor) : 1;
      const double term = slope * gradient * static_cast<double>(x.view()(n, e));
      sums[static_cast<std::size_t>(column)] += term;
      sizes[static_cast<std::size_t>(column)] += std::abs(term);
    }
    for (std::size_t column = 0; column < sums.size(); ++column) {
      EXPECT_NEAR(by_gradient.view()(n, static_cast<std::int64_t>(column)), sums[column], kTolerance * sizes[column]);
    }
  }
  EXPECT_TRUE(x_gradient.gaps_are_untouched());
  EXPECT_TRUE(by_gradient.gaps_are_untouched());
  const Tensor<float, 2> before = by_gradient.to<float>();
  run(x.view());
  EXPECT_TRUE(same_bits(x.view(), x_gradient.view())) << "in place";
  EXPECT_TRUE(same_bits(by_gradient.view(), before.view())) << "in place";
}

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

// Gradients are sums of at most the longest row's products.
TEST_P(HeadMergeTest, GoesBackOnRaggedRows) {
  Engine engine(options());
  Random random(4);
  for (const std::int64_t head_dim : kRowLengths) {
    for (const Against side : kBothSides) {
      const std::int64_t heads = random.integer(1, 5);
      for (const char* how : {"weighed", "weighed alike", "gated by head", "gated by element"}) {
        SCOPED_TRACE(testing::Message() << heads << " heads of " << head_dim << ", " << how);
        check_backward(engine, random, side, heads, head_dim, how);
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

}  // namespace headlight::test::head_merge_test
