#include <algorithm>
#include <cmath>
#include <limits>

#include "headlight/normalization.h"
#include "reference/normalization.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::test::softmax_test {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using SoftmaxTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(SoftmaxTest);

void check(Engine& engine, const GuardedRows& x, const GuardedRows& y) {
  Tensor<double, 2> truth(x.view().shape);
  Tensor<float, 2> plain(x.view().shape);
  const Tensor<double, 2> x64 = x.to<double>();
  reference::softmax<double>(x64.view(), truth.view());
  reference::softmax<float>(x.const_view(), plain.view());
  softmax(engine, x.const_view(), y.view());
  EXPECT_TRUE(at_most_twice_the_plain_error(y.view(), plain.view(), truth.view()));
  EXPECT_TRUE(y.gaps_are_untouched());
}

TEST_P(SoftmaxTest, AgreesWithTheTwinOnRaggedRows) {
  Engine engine(options());
  Random random(1);
  for (const std::int64_t columns : kRowLengths) {
    for (const Against side : kBothSides) {
      for (const float scale : {0.1f, 1.0f, 30.0f, 1000.0f}) {
        SCOPED_TRACE(testing::Message() << columns << " columns, scores of size " << scale);
        GuardedRows x(3, columns, random.integer(0, 5), side);
        check(engine, x.fill(random, scale), GuardedRows(3, columns, random.integer(0, 5), side));
      }
    }
  }
}

// Every place of a row may be the largest or −inf, in whole vectors and in the last, partial one.
TEST_P(SoftmaxTest, FindsTheLargestAnywhere) {
  Engine engine(options());
  Random random(2);
  for (std::int64_t j = 0; j < 83; ++j) {
    GuardedRows x(2, 83, 0, Against::back);
    x.fill(random);
    x.view()(0, j) = 200.0f;
    x.view()(1, j) = -kInfinity;
    const GuardedRows y(2, 83, 0, Against::back);
    check(engine, x, y);
    EXPECT_EQ(y.view()(0, j), 1.0f);
    EXPECT_EQ(y.view()(1, j), 0.0f);
  }
}

// A row of −inf gives zeros, −inf a weight of exactly 0; NaN and +inf make their row NaN, and no other.
TEST_P(SoftmaxTest, TreatsInfinityAndNaNByTheRules) {
  Engine engine(options());
  for (const std::int64_t columns : kRowLengths) {
    if (columns == 0) continue;
    for (const std::int64_t j : {std::int64_t{0}, columns / 2, columns - 1}) {
      GuardedRows x(5, columns, 0, Against::back);
      for (std::int64_t e = 0; e < columns; ++e) x.view()(0, e) = x.view()(1, e) = -kInfinity;
      x.view()(1, j) = std::nanf("");
      x.view()(2, j) = std::nanf("");
      x.view()(3, j) = kInfinity;
      const GuardedRows y(5, columns, 0, Against::back);
      softmax(engine, x.const_view(), y.view());
      for (std::int64_t e = 0; e < columns; ++e) {
        EXPECT_EQ(y.view()(0, e), 0.0f);
        for (const std::int64_t row : {1, 2, 3}) EXPECT_TRUE(std::isnan(y.view()(row, e))) << "row " << row;
        EXPECT_NEAR(y.view()(4, e), 1.0 / static_cast<double>(columns), 1e-7);
      }
    }
  }
}

// Whatever the largest number is: what lies 105 below has a weight of 0, and what lies 80 below has not.
TEST_P(SoftmaxTest, WeighsByTheDistanceFromAnyMaximum) {
  Engine engine(options());
  constexpr float kMost = std::numeric_limits<float>::max();
  for (const float largest : {0.0f, 1.0f, -1.0f, 1e4f, -1e4f, 2.6e8f, -2.6e8f, 2.8e8f, -2.8e8f, 1e9f, -1e9f, 1e20f,
                              -1e20f, 2e38f, -2e38f, kMost, -kMost}) {
    SCOPED_TRACE(testing::Message() << "largest " << largest);
    const float below = std::nextafter(largest, -kInfinity);
    GuardedRows x(3, 45, 0, Against::back);
    for (std::int64_t j = 0; j < 45; ++j) {
      x.view()(0, j) = std::max(j % 3 == 0 ? largest : largest - static_cast<float>(60 + j), -kMost);
      x.view()(1, j) = j == 30 ? largest : std::max(std::min(below, largest - 105), -kMost);
      x.view()(2, j) = j == 30 ? largest : j % 2 == 0 ? -kMost : -kInfinity;
    }
    const GuardedRows y(3, 45, 0, Against::back);
    check(engine, x, y);
    for (std::int64_t row = 0; row < 3; ++row) {
      for (std::int64_t j = 0; j < 45; ++j) {
        const double distance = static_cast<double>(largest) - static_cast<double>(x.view()(row, j));
        SCOPED_TRACE(testing::Message() << "row " << row << ", column " << j);
        if (distance > 104) {
          EXPECT_EQ(y.view()(row, j), 0.0f);
        }
        if (distance < 80) {
          EXPECT_GT(y.view()(row, j), 0.0f);
        }
      }
    }
  }
}

TEST_P(SoftmaxTest, GivesTheSameBitsInPlaceAndOnAnyNumberOfThreads) {
  Random random(3);
  const Tensor<float, 2> x = random.normal_tensor<2>({257, 515}, 3.0f);
  Tensor<float, 2> once({257, 515});
  Engine one(options(1));
  softmax(one, x.view(), once.view());
  for (const int threads : {1, 2, 3, 5, 8}) {
    Engine engine(options(threads));
    Tensor<float, 2> y = converted<float>(x);
    softmax(engine, y.view(), y.view());
    EXPECT_TRUE(same_bits(y.view(), once.view())) << threads << " threads";
  }
  // One row has no next one, whatever strides say.
  Tensor<float, 2> row({1, 515});
  std::copy_n(x.data(), 515, row.data());
  softmax(one, View<const float, 2>(row.data(), {1, 515}, {600, 1}), View<float, 2>(row.data(), {1, 515}));
  EXPECT_TRUE(same_bits(row.view(), View<float, 2>(once.data(), {1, 515})));
  // Alone: one row of many.
  Tensor<float, 2> alone({1, 515});
  softmax(one, {x.data() + 100 * 515, {1, 515}}, alone.view());
  EXPECT_TRUE(same_bits(alone.view(), View<float, 2>(once.data() + 100 * 515, {1, 515})));
}

TEST(SoftmaxArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  Tensor<float, 2> x({4, 6});
  Tensor<float, 2> y({4, 5});
  EXPECT_EQ(refusal([&] { softmax(engine, x.view(), y.view()); }),
            "softmax: y has shape [4, 5], expected [4, 6] (the shape of x)");
  EXPECT_EQ(refusal([&] { softmax(engine, {}, y.view()); }),
            "softmax: x is not given (a view without memory or shape)");
  EXPECT_EQ(refusal([&] {
              softmax(engine, View<const float, 2>(x.data(), {3, 6}), View<float, 2>(x.data() + 6, {3, 6}));
            }),
            "softmax: y overlaps x in memory");
  EXPECT_EQ(refusal([&] {
              softmax(engine, View<const float, 2>(nullptr, {3, 6}), x.view());
            }),
            "softmax: x of shape [3, 6] has no memory (a null pointer)");
  EXPECT_EQ(refusal([&] {
              softmax(engine, View<const float, 2>(x.data(), {2, 6}, {12, 2}), x.view());
            }),
            "softmax: x has the last stride 2, expected 1");
}

}  // namespace headlight::test::softmax_test
