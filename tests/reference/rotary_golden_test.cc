// The twin of rotary angles against Transformers in float64.
#include "reference/rotary.h"
#include "support/golden.h"
#include "support/gradient_check.h"
#include "support/random.h"
#include "support/rotary_cases.h"

namespace headlight::test::rotary_golden_test {

TEST(ReferenceRotaryGoldenTest, AgreesWithTransformersInEveryKind) {
  GoldenNumbers golden("rotary.npy");
  int number = 0;
  for (const RotaryCase& made : rotary_cases()) {
    SCOPED_TRACE(testing::Message() << "case " << number++);
    for (const double theta : reference::rotary_frequencies(made.spec, made.head_dim, made.length)) {
      const double truth = golden.next<1>({1})(0);
      EXPECT_NEAR(theta, truth, 1e-13 * truth);
    }
    EXPECT_NEAR(reference::rotary_attention_factor(made.spec.scaling), golden.next<1>({1})(0), 1e-13);
  }
  EXPECT_TRUE(golden.at_end());
}

TEST(GradientTwins, HeadRows) {
  Random random(7);
  constexpr std::int64_t kRows = 3, kHeads = 2, kHeadDim = 10;
  const auto numbers = [&](std::int64_t rows, std::int64_t heads, std::int64_t columns) {
    return converted<double>(random.normal_tensor<3>({rows, heads, columns}));
  };
  Tensor<double, 3> x = numbers(kRows, kHeads, kHeadDim), weight = numbers(1, 1, kHeadDim);
  Tensor<double, 3> bias = numbers(1, 1, kHeadDim);
  const Tensor<double, 3> angles = numbers(1, kRows, 6), weights = numbers(kRows, kHeads, kHeadDim);
  for (const NormKind norm : {NormKind::none, NormKind::layer, NormKind::rms}) {
    for (const RotaryPairing pairing : {RotaryPairing::halves, RotaryPairing::interleaved}) {
      SCOPED_TRACE(testing::Message() << "norm " << static_cast<int>(norm) << ", pairing "
                                      << static_cast<int>(pairing));
      const reference::HeadRows<double> options = {
          .norm = norm,
          .weight = {weight.data(), {kHeadDim}},
          .bias = {bias.data(), {kHeadDim}},
          .one_plus_weight = norm == NormKind::rms,
          .epsilon = 1e-5,
          // Any table: turning back is the transpose, whether or not cos² + sin² is 1.
          .cosines_and_sines = {angles.data(), {kRows, 6}},
          .pairing = pairing};
      Tensor<double, 3> x_gradient(x.shape()), weight_gradient(weight.shape()), bias_gradient(bias.shape());
      reference::head_rows_backward<double>(x, weights, options, x_gradient, {weight_gradient.data(), {kHeadDim}},
                                            {bias_gradient.data(), {kHeadDim}});
      const auto loss = [&] {
        Tensor<double, 3> y(x.shape());
        reference::head_rows<double>(x, options, y);
        return weighted_sum(y, weights);
      };
      EXPECT_TRUE(gradient_agrees(x, x_gradient, loss));
      if (norm == NormKind::none) continue;
      EXPECT_TRUE(gradient_agrees(weight, weight_gradient, loss));
      if (norm == NormKind::layer) {
        EXPECT_TRUE(gradient_agrees(bias, bias_gradient, loss));
      }
    }
  }
}

}  // namespace headlight::test::rotary_golden_test
