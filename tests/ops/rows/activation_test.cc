#include "headlight/activation.h"

#include "reference/activation.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/row_yardsticks.h"

namespace headlight::test::activation_test {

using ActivationTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(ActivationTest);

constexpr std::array<Activation, 5> kActivations = {Activation::none, Activation::relu, Activation::gelu,
                                                    Activation::gelu_tanh, Activation::silu};

TEST_P(ActivationTest, AgreesWithTheTwinOnRaggedRows) {
  Engine engine(options());
  Random random(1);
  for (const Activation activation : kActivations) {
    for (const std::int64_t columns : kRowLengths) {
      for (const Against side : kBothSides) {
        SCOPED_TRACE(testing::Message() << "activation " << static_cast<int>(activation) << ", " << columns);
        GuardedRows x(3, columns, random.integer(0, 5), side);
        x.fill(random, 3.0f);
        const GuardedRows y(3, columns, random.integer(0, 5), side);
        activate(engine, activation, x.const_view(), y.view());
        for (std::int64_t n = 0; n < 3; ++n) {
          for (std::int64_t e = 0; e < columns; ++e) {
            const double truth = reference::activate(activation, static_cast<double>(x.view()(n, e)));
            EXPECT_NEAR(y.view()(n, e), truth, activation_error(activation, truth)) << "x = " << x.view()(n, e);
          }
        }
        EXPECT_TRUE(y.gaps_are_untouched());
        activate(engine, activation, x.const_view(), x.view());
        EXPECT_TRUE(same_bits(x.view(), y.view())) << "in place";
      }
    }
  }
}

// In whole vectors and in the last, partial one.
TEST_P(ActivationTest, LetsNaNPass) {
  Engine engine(options());
  for (const Activation activation : kActivations) {
    Tensor<float, 2> x({1, 77});
    for (float& element : x) element = std::nanf("");
    activate(engine, activation, x.view(), x.view());
    for (const float element : x) EXPECT_TRUE(std::isnan(element)) << static_cast<int>(activation);
  }
}

TEST_P(ActivationTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  Random random(2);
  const Tensor<float, 2> x = random.normal_tensor<2>({600, 401}, 3.0f);
  Tensor<float, 2> once(x.shape());
  Engine one(options(1));
  activate(one, Activation::gelu, x.view(), once.view());
  for (const int threads : more_threads()) {
    Engine engine(options(threads));
    Tensor<float, 2> y(x.shape());
    activate(engine, Activation::gelu, x.view(), y.view());
    EXPECT_TRUE(same_bits(y.view(), once.view())) << threads << " threads";
  }
}

TEST(ActivationArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  Tensor<float, 2> x({4, 6});
  Tensor<float, 2> y({4, 5});
  EXPECT_EQ(refusal([&] { activate(engine, Activation::relu, x.view(), y.view()); }),
            "activate: y has shape [4, 5], expected [4, 6] (the shape of x)");
  EXPECT_EQ(refusal([&] { activate(engine, static_cast<Activation>(9), x.view(), x.view()); }),
            "activate: activation is 9, expected one of the enum");
}

}  // namespace headlight::test::activation_test
