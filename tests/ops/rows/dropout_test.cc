#include "headlight/dropout.h"

#include "reference/dropout.h"
#include "runtime/philox.h"
#include "support/guarded_rows.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::test::dropout_test {

using DropoutTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(DropoutTest);

// The published answers (kat_vectors of the authors' Random123): both Philox of the project.
TEST(Philox, GivesTheKnownAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  const auto check = [](const Words& counter, std::uint64_t seed, const Words& expected) {
    EXPECT_EQ(reference::philox(counter, seed), expected);
    EXPECT_EQ(runtime::philox4x32(counter, runtime::philox_key(seed)), expected);
  };
  check({0, 0, 0, 0}, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  check({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff,
        {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  check({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822,
        {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

// The mask element by element, the kept values to a rounding.
TEST_P(DropoutTest, AgreesWithTheTwinOnRaggedRows) {
  Engine engine(options());
  Random random(1);
  for (const std::int64_t columns : kRowLengths) {
    for (const float probability : {0.0f, 0.1f, 0.5f, 0.999f}) {
      for (const bool with_residual : {false, true}) {
        SCOPED_TRACE(testing::Message() << columns << " columns, p = " << probability << ", residual "
                                        << with_residual);
        const Against side = kBothSides[static_cast<std::size_t>(random.integer(0, 1))];
        const std::int64_t gap = random.integer(0, 5);
        GuardedRows x(3, columns, gap, side);
        GuardedRows residual(3, columns, gap, side);
        x.fill(random);
        residual.fill(random);
        const GuardedRows y(3, columns, gap, side);
        const Dropout options{probability, random.next(), static_cast<std::uint32_t>(random.next())};
        const View<const float, 2> added = with_residual ? residual.const_view() : View<const float, 2>();
        dropout(engine, x.const_view(), y.view(), options, added);

        const Tensor<double, 2> twin_x = x.to<double>(), twin_residual = residual.to<double>();
        Tensor<double, 2> truth(x.view().shape);
        reference::dropout<double>(twin_x, truth, options,
                                   with_residual ? twin_residual.view() : View<const double, 2>());
        EXPECT_TRUE(within(y.view(), truth.view(), 4 * kUnitRoundoff));
        for (std::int64_t i = 0; i < 3 && !with_residual; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) EXPECT_EQ(y.view()(i, j) == 0, truth(i, j) == 0) << i << ", " << j;
        }
        EXPECT_TRUE(y.gaps_are_untouched());
        dropout(engine, x.const_view(), x.view(), options, added);
        EXPECT_TRUE(same_bits(x.view(), y.view())) << "in place";
      }
    }
  }
}

TEST_P(DropoutTest, GivesTheSameBitsOnAnyNumberOfThreadsAndKeepsTheShareAsked) {
  Random random(2);
  Tensor<float, 2> x({700, 401});
  for (float& element : x) element = 1.0f;
  Tensor<float, 2> once(x.shape());
  Engine one(options(1));
  const Dropout options_of_dropout{.probability = 0.1f, .seed = 3, .stream = 4};
  dropout(one, x.view(), once.view(), options_of_dropout);
  double kept = 0;
  for (const float element : once) {
    EXPECT_TRUE(element == 0 || element == 1.0f / 0.9f);
    kept += element != 0;
  }
  // Five standard deviations.
  EXPECT_NEAR(kept / static_cast<double>(x.size()), 0.9, 5 * std::sqrt(0.09 / static_cast<double>(x.size())));
  for (const int threads : more_threads()) {
    Engine engine(options(threads));
    Tensor<float, 2> y(x.shape());
    dropout(engine, x.view(), y.view(), options_of_dropout);
    EXPECT_TRUE(same_bits(y.view(), once.view())) << threads << " threads";
  }
}

TEST(DropoutArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  Tensor<float, 2> x({4, 6});
  Tensor<float, 2> y({4, 5});
  EXPECT_EQ(refusal([&] { dropout(engine, x.view(), y.view(), {}); }),
            "dropout: y has shape [4, 5], expected [4, 6] (the shape of x)");
  for (const float wrong : {1.0f, -0.1f, std::nanf("")}) {
    EXPECT_NE(refusal([&] {
                dropout(engine, x.view(), x.view(), {.probability = wrong});
              }).find("expected a probability in [0, 1)"),
              std::string::npos);
  }
}

}  // namespace headlight::test::dropout_test
