// The twin of attention() against PyTorch in float64, so that what everything else is measured by is itself measured.
#include "gtest/gtest.h"
#include "reference/attention.h"
#include "support/attention_case.h"
#include "support/compare.h"
#include "support/golden.h"

namespace headlight::attention_golden_test {

// Sums of at most some 600 terms, each rounded at 2⁻⁵³, in exponents no larger than 32: 600 · 32 · 2⁻⁵³.
constexpr double kTolerance = 2e-12;

TEST(ReferenceAttentionGoldenTest, AgreesWithPyTorchInFloat64) {
  test::GoldenNumbers golden("attention.npy");
  for (const std::string& line : test::golden_lines("attention_cases.txt")) {
    SCOPED_TRACE(line);
    const auto c = test::AttentionCase::parse(line);
    const test::AttentionInputs in(c);
    const auto expected_out = golden.next<4>({c.batch, c.query_length, c.query_heads, c.value_dim});
    const auto expected_log_sum_exp = golden.next<3>({c.batch, c.query_heads, c.query_length});

    Tensor<double, 4> out(expected_out.shape());
    Tensor<double, 3> log_sum_exp(expected_log_sum_exp.shape());
    reference::attention<double>(test::converted<double>(in.query), test::converted<double>(in.key),
                                 test::converted<double>(in.value), out, in.options, {.log_sum_exp = log_sum_exp});
    EXPECT_TRUE(test::within(out.view(), expected_out.view(), kTolerance));
    EXPECT_TRUE(test::within(log_sum_exp.view(), expected_log_sum_exp.view(), kTolerance));
  }
  EXPECT_TRUE(golden.at_end());
}

}  // namespace headlight::attention_golden_test
