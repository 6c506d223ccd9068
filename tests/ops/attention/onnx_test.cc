// attention() means what ONNX's operator Attention means: the cases that ONNX keeps for it, without ONNX. See
// tests/golden.
#include <sstream>

#include "support/attention_case.h"
#include "support/attention_results.h"
#include "support/attention_routes.h"
#include "support/compare.h"
#include "support/golden.h"

namespace headlight::test::attention_onnx_test {

class AttentionOnnxTest : public EachRoute {};
HEADLIGHT_ON_EVERY_ROUTE(AttentionOnnxTest, engine_routes());

// The inputs of the next case take the place of those that the case would draw.
void read(GoldenNumbers& golden, AttentionInputs& in) {
  for (Tensor<float, 4>* tensor : {&in.query, &in.key, &in.value})
    *tensor = converted<float>(golden.next<4>(tensor->shape()));
  if (in.options.mask) {
    const Tensor<double, 4> entries = golden.next<4>(in.mask.shape());
    std::copy(entries.begin(), entries.end(), in.mask.begin());
  }
  if (in.options.bias) {
    const Tensor<double, 4> entries = golden.next<4>(in.bias.shape());
    std::copy(entries.begin(), entries.end(), in.bias.begin());
  }
}

// ONNX computed in float32. What its numbers and the twin's in float32 differ by is what such numbers differ by.
TEST_P(AttentionOnnxTest, MeansWhatTheOperatorMeans) {
  GoldenNumbers golden("onnx_attention.npy");
  int fourth_outputs = 0;
  for (const std::string& line : golden_lines("onnx_attention_cases.txt")) {
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string name, fourth, call;
    words >> name >> fourth >> std::ws;
    std::getline(words, call);
    const AttentionCase c = AttentionCase::parse(call);
    AttentionInputs in(c);
    read(golden, in);
    const Tensor<double, 4> expected = golden.next<4>({c.batch, c.query_length, c.query_heads, c.value_dim});

    if (fourth == "raw") in.options.scores_at = ScoreStage::raw;
    if (fourth == "capped") in.options.scores_at = ScoreStage::capped;
    if (fourth == "masked") in.options.scores_at = ScoreStage::masked;
    AttentionResults<float> results(c);
    AttentionOptions options = in.options;
    options.scores = results.scores;
    options.probabilities.per_head = results.probabilities;
    GetParam()(in.query, in.key, in.value, results.out, options);

    const AttentionResults<float> plain = plain_results<float>(c, in);
    const AttentionYardsticks yardsticks(c, in, plain_results<double>(c, in));
    EXPECT_TRUE(
        at_most_twice_the_plain_error(results.out.view(), plain.out.view(), expected.view(), yardsticks.out.view()));
    if (fourth == "-") continue;
    ++fourth_outputs;
    const Tensor<double, 4> looked_at = golden.next<4>(results.scores.shape());
    if (fourth == "probabilities") {
      EXPECT_TRUE(
          at_most_twice_the_plain_error(results.probabilities.view(), plain.probabilities.view(), looked_at.view()));
    } else {
      EXPECT_TRUE(at_most_twice_the_plain_error(results.scores.view(), plain.scores.view(), looked_at.view(),
                                                yardsticks.scores.view()));
    }
  }
  EXPECT_TRUE(golden.at_end());
  EXPECT_GT(fourth_outputs, 10);
}

}  // namespace headlight::test::attention_onnx_test
