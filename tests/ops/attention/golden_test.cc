// attention() and attention_unfused() against PyTorch's numbers, without PyTorch: see tests/golden.
#include "support/golden.h"

#include "support/attention_case.h"
#include "support/attention_results.h"
#include "support/attention_routes.h"
#include "support/compare.h"

namespace headlight::attention_golden_test {

class AttentionGoldenTest : public test::EachRoute {};

TEST_P(AttentionGoldenTest, ErrsAtMostTwiceAsMuchAsThePlainComputation) {
  test::GoldenNumbers golden("attention.npy");
  for (const std::string& line : test::golden_lines("attention_cases.txt")) {
    SCOPED_TRACE(line);
    const auto c = test::AttentionCase::parse(line);
    const test::AttentionInputs in(c);
    const auto expected_out = golden.next<4>({c.batch, c.query_length, c.query_heads, c.value_dim});
    const auto expected_log_sum_exp = golden.next<3>({c.batch, c.query_heads, c.query_length});

    const auto plain = test::plain_results<float>(c, in);
    const test::AttentionYardsticks yardsticks(c, in, test::plain_results<double>(c, in));
    test::AttentionResults<float> results(c);
    AttentionOptions options = in.options;
    options.log_sum_exp = results.log_sum_exp;
    GetParam()(in.query, in.key, in.value, results.out, options);
    EXPECT_TRUE(test::at_most_twice_the_plain_error(results.out.view(), plain.out.view(), expected_out.view(),
                                                    yardsticks.out.view()));
    EXPECT_TRUE(test::at_most_twice_the_plain_error(results.log_sum_exp.view(), plain.log_sum_exp.view(),
                                                    expected_log_sum_exp.view(), yardsticks.log_sum_exp.view()));
  }
}

HEADLIGHT_ON_EVERY_ROUTE(AttentionGoldenTest, test::engine_routes());

}  // namespace headlight::attention_golden_test
