#include "ops/rows/cap.h"

#include <cmath>

#include "reference/activation.h"
#include "support/guarded_rows.h"
#include "support/isas.h"

namespace headlight::test::cap_test {

using CapTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(CapTest);

constexpr float kFactor = 0.7f, kCap = 2.5f;

TEST_P(CapTest, AgreesWithTheTwinOnRaggedRows) {
  Engine engine(options());
  Random random(1);
  for (const std::int64_t columns : kRowLengths) {
    for (const Against side : kBothSides) {
      SCOPED_TRACE(columns);
      GuardedRows x(3, columns, random.integer(0, 5), side), gradient(3, columns, random.integer(0, 5), side);
      x.fill(random, 5.0f);
      gradient.fill(random);
      const GuardedRows y(3, columns, random.integer(0, 5), side), back(3, columns, random.integer(0, 5), side);
      ops::cap_rows(engine, kFactor, kCap, x.const_view(), y.view());
      ops::cap_rows_backward(engine, kFactor, kCap, y.const_view(), gradient.const_view(), back.view());
      for (std::int64_t n = 0; n < 3; ++n) {
        for (std::int64_t e = 0; e < columns; ++e) {
          const auto in = static_cast<double>(x.view()(n, e)), g = static_cast<double>(gradient.view()(n, e));
          const auto factor = static_cast<double>(kFactor), cap = static_cast<double>(kCap);
          // Two factors in and one out, and tanh's 2.5 ULP.
          const double truth = reference::softcap(factor, cap, in);
          EXPECT_NEAR(y.view()(n, e), truth, 8 * kUnitRoundoff * std::abs(truth)) << in;
          // That of y goes twice into the square, whose distance from 1 has the error of 1.
          const double slope = g * reference::softcap_derivative(factor, cap, in);
          EXPECT_NEAR(back.view()(n, e), slope, 24 * kUnitRoundoff * factor * std::abs(g)) << in;
        }
      }
      EXPECT_TRUE(y.gaps_are_untouched());
      EXPECT_TRUE(back.gaps_are_untouched());
      ops::cap_rows_backward(engine, kFactor, kCap, y.const_view(), gradient.const_view(), gradient.view());
      EXPECT_TRUE(same_bits(gradient.view(), back.view())) << "in place";
      ops::cap_rows(engine, kFactor, kCap, x.const_view(), x.view());
      EXPECT_TRUE(same_bits(x.view(), y.view())) << "in place";
    }
  }
}

TEST_P(CapTest, LetsNaNPassAndStopsAtTheCap) {
  Engine engine(options());
  Tensor<float, 2> x({1, 77});
  for (float& number : x) number = INFINITY;
  x(0, 3) = x(0, 76) = std::nanf("");
  x(0, 5) = -1e30f;
  ops::cap_rows(engine, kFactor, kCap, x.view(), x.view());
  for (std::int64_t e = 0; e < 77; ++e) {
    if (e == 3 || e == 76) {
      EXPECT_TRUE(std::isnan(x(0, e)));
    } else {
      EXPECT_EQ(x(0, e), e == 5 ? -kCap : kCap);
    }
  }
}

TEST_P(CapTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  Random random(2);
  const Tensor<float, 2> x = random.normal_tensor<2>({600, 401}, 3.0f), gradient = random.uniform_tensor<2>(x.shape());
  Tensor<float, 2> once(x.shape()), once_back(x.shape());
  Engine one(options(1));
  ops::cap_rows(one, kFactor, kCap, x.view(), once.view());
  ops::cap_rows_backward(one, kFactor, kCap, once.view(), gradient.view(), once_back.view());
  for (const int threads : {2, 5}) {
    Engine engine(options(threads));
    Tensor<float, 2> y(x.shape()), back(x.shape());
    ops::cap_rows(engine, kFactor, kCap, x.view(), y.view());
    ops::cap_rows_backward(engine, kFactor, kCap, y.view(), gradient.view(), back.view());
    EXPECT_TRUE(same_bits(y.view(), once.view())) << threads << " threads";
    EXPECT_TRUE(same_bits(back.view(), once_back.view())) << threads << " threads";
  }
}

}  // namespace headlight::test::cap_test
