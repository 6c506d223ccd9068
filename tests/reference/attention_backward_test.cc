// The twin of attention_backward() against central differences of the twin of attention(): every option at random.
#include "reference/attention_backward.h"

#include <algorithm>
#include <cmath>

#include "gtest/gtest.h"
#include "reference/attention.h"
#include "support/attention_gradients.h"
#include "support/golden.h"
#include "support/gradient_check.h"
#include "support/quick.h"

namespace headlight::attention_backward_test {

void expect_gradients(const test::AttentionCase& c) {
  SCOPED_TRACE(c.line());
  test::AttentionInputs in(c);
  auto query = test::converted<double>(in.query);
  auto key = test::converted<double>(in.key);
  auto value = test::converted<double>(in.value);
  Tensor<double, 4> out({c.batch, c.query_length, c.query_heads, c.value_dim});
  test::Random random(c.seed + 99);
  const auto weights = test::converted<double>(random.normal_tensor<4>(out.shape()));
  // Every other sum has log_sum_exp in it; that of a row which sees nothing is a constant.
  const bool with_log_sum_exp = c.seed % 2 == 1;
  Tensor<double, 3> log_sum_exp({c.batch, c.query_heads, c.query_length});
  const auto log_sum_exp_weights = test::converted<double>(test::log_sum_exp_gradient_of(c));
  Tensor<double, 4> query_gradient(query.shape()), key_gradient(key.shape()), value_gradient(value.shape()),
      bias_gradient(in.bias.shape());
  reference::AttentionGradients<double> gradients{query_gradient, key_gradient, value_gradient};
  if (c.bias) gradients.bias = bias_gradient;
  reference::attention_backward<double>(query, key, value, weights, gradients, in.options,
                                        with_log_sum_exp ? log_sum_exp_weights.view() : View<const double, 3>());

  const auto loss = [&] {
    reference::attention<double>(query, key, value, out, in.options, {.log_sum_exp = log_sum_exp});
    if (!with_log_sum_exp) return test::weighted_sum(out, weights);
    for (double& number : log_sum_exp) number = std::isinf(number) ? 0 : number;
    return test::weighted_sum(out, weights) + test::weighted_sum(log_sum_exp, log_sum_exp_weights);
  };
  EXPECT_TRUE(test::gradient_agrees(query, query_gradient, loss, {.places = 40}));
  EXPECT_TRUE(test::gradient_agrees(key, key_gradient, loss, {.places = 40}));
  EXPECT_TRUE(test::gradient_agrees(value, value_gradient, loss, {.places = 40}));
  // A bias is float32, in which 2⁻¹² is a step that most entries take exactly; it errs by 10⁻⁸ of the third derivative.
  EXPECT_TRUE(test::gradient_agrees(in.bias, bias_gradient, loss, {.step = 0x1p-12, .tolerance = 1e-6, .places = 20}));
}

TEST(ReferenceAttentionBackwardTest, AgreesWithCentralDifferences) {
  const int cases = test::count(60, 15);
  for (int seed = 0; seed < cases; ++seed) {
    test::AttentionCase c = test::random_attention_case(static_cast<std::uint64_t>(seed), 12);
    c.head_dim = std::min<std::int64_t>(c.head_dim, 9);
    c.value_dim = std::min<std::int64_t>(c.value_dim, 9);
    expect_gradients(c);
  }
}

// Sums of at most some 800 terms, each rounded at 2⁻⁵³, in exponents no larger than 32.
constexpr double kTolerance = 2e-12;

TEST(ReferenceAttentionBackwardTest, AgreesWithPyTorchInFloat64) {
  test::GoldenNumbers golden("attention_backward.npy");
  for (const std::string& line : test::golden_lines("attention_backward_cases.txt")) {
    SCOPED_TRACE(line);
    const auto c = test::AttentionCase::parse(line);
    const test::AttentionInputs in(c);
    const Tensor<float, 4> out_gradient = test::out_gradient_of(c);
    const auto truth = test::golden_gradients(golden, in);
    const auto plain = test::plain_gradients<double>(in, out_gradient);
    const auto sizes = test::gradient_yardsticks(in, out_gradient);
    EXPECT_TRUE(test::within(plain.query.view(), truth.query.view(), kTolerance, sizes.query.view()));
    EXPECT_TRUE(test::within(plain.key.view(), truth.key.view(), kTolerance, sizes.key.view()));
    EXPECT_TRUE(test::within(plain.value.view(), truth.value.view(), kTolerance, sizes.value.view()));
    EXPECT_TRUE(test::within(plain.bias.view(), truth.bias.view(), kTolerance, sizes.bias.view()));
    EXPECT_TRUE(test::within(plain.sinks.view(), truth.sinks.view(), kTolerance, sizes.sinks.view()));
  }
  EXPECT_TRUE(golden.at_end());
}

}  // namespace headlight::attention_backward_test
