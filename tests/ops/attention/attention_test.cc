// The tiled attention against its plain float64 twin: every head_dim, ragged sizes, every option, every instruction
// set.
#include "headlight/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "gtest/gtest.h"
#include "reference/attention.h"
#include "support/attention_case.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::attention_test {

using test::AttentionCase;
using test::AttentionInputs;

class AttentionTest : public test::EachIsa {};

// A log-sum-exp is a sum of terms that may cancel, so its errors are held against the largest one of the case.
void expect_close_rows(const Tensor<float, 3>& rows, const Tensor<float, 3>& plain, const Tensor<double, 3>& truth) {
  double largest = 1;
  double plain_error = 0;
  for (std::int64_t n = 0; n < rows.size(); ++n) {
    if (!std::isfinite(truth.data()[n])) continue;
    largest = std::max(largest, std::abs(truth.data()[n]));
    plain_error = std::max(plain_error, std::abs(static_cast<double>(plain.data()[n]) - truth.data()[n]));
  }
  const double allowed = 2 * plain_error + 8 * test::kUnitRoundoff * largest;
  for (std::int64_t n = 0; n < rows.size(); ++n) {
    const auto row = static_cast<double>(rows.data()[n]);
    if (std::isinf(truth.data()[n])) {
      EXPECT_EQ(row, truth.data()[n]) << "row " << n;
    } else {
      EXPECT_NEAR(row, truth.data()[n], allowed) << "row " << n;
    }
  }
}

// Output and log-sum-exp within the promise.
void expect_close(Engine& engine, const AttentionCase& c) {
  SCOPED_TRACE(c.line());
  const AttentionInputs inputs(c);
  const View<float, 4>::Shape shape = {c.batch, c.query_length, c.query_heads, c.value_dim};
  const View<float, 3>::Shape rows_shape = {c.batch, c.query_heads, c.query_length};

  Tensor<double, 4> truth(shape);
  Tensor<double, 3> truth_rows(rows_shape);
  reference::attention<double>(test::converted<double>(inputs.query), test::converted<double>(inputs.key),
                               test::converted<double>(inputs.value), truth, inputs.options, {truth_rows.view(), {}});
  Tensor<float, 4> plain(shape);
  Tensor<float, 3> plain_rows(rows_shape);
  reference::attention<float>(inputs.query, inputs.key, inputs.value, plain, inputs.options, {plain_rows.view(), {}});

  Tensor<float, 4> out(shape);
  Tensor<float, 3> rows(rows_shape);
  for (float& element : out) element = 1e30f;
  for (float& element : rows) element = 1e30f;
  AttentionOptions options = inputs.options;
  options.log_sum_exp = rows;
  attention(engine, inputs.query, inputs.key, inputs.value, out, options);
  EXPECT_TRUE(test::at_most_twice_the_plain_error(out.view(), plain.view(), truth.view()));
  expect_close_rows(rows, plain_rows, truth_rows);
}

TEST_P(AttentionTest, EveryOptionAtRandom) {
  Engine engine(options(2));
  const int cases = test::count(300, 60);
  for (int seed = 0; seed < cases; ++seed) {
    AttentionCase c = test::random_attention_case(static_cast<std::uint64_t>(seed), seed % 8 == 0 ? 300 : 70);
    // The norm of a row of one or two elements may be nothing but what cancellation left: chance, not accuracy.
    c.value_dim = std::max<std::int64_t>(c.value_dim, 8);
    expect_close(engine, c);
  }
}

TEST_P(AttentionTest, EveryHeadDim) {
  Engine engine(options());
  for (std::int64_t dim = 1; dim <= 512; dim += dim < 40 ? 1 : 23) {
    AttentionCase c;
    c.seed = static_cast<std::uint64_t>(dim);
    c.query_length = dim % 3 == 0 ? 1 : 5 + dim % 17;
    c.key_length = 1 + dim * 7 % 150;
    c.query_heads = 2;
    c.head_dim = dim;
    c.value_dim = dim % 2 == 0 && dim >= 8 ? dim : 513 - dim;
    expect_close(engine, c);
  }
}

// From caps so small that they leave nothing of a score to caps so large that they leave it as it is: scores that are a
// thousandth to ten times the cap.
TEST_P(AttentionTest, CapsOfEverySize) {
  Engine engine(options());
  constexpr std::int64_t kKeys = 150;
  Tensor<float, 4> query({1, 1, 1, 1}), key({1, kKeys, 1, 1}), value({1, kKeys, 1, 1}), out({1, 1, 1, 1});
  Tensor<float, 4> scores({1, 1, 1, kKeys});
  query(0, 0, 0, 0) = 1;
  AttentionOptions options;
  options.scale = 1.0f;
  options.scores = scores;
  options.scores_at = ScoreStage::capped;
  for (const float cap : {1e-30f, 1e-6f, 3e-5f, 0.3f, 1.0f, 30.0f, 2e4f, 4e4f, 3e5f, 1e12f, 1e30f}) {
    for (std::int64_t j = 0; j < kKeys; ++j) {
      const double ratio = std::pow(10.0, 4 * static_cast<double>(j) / static_cast<double>(kKeys - 1) - 3);
      key(0, j, 0, 0) = static_cast<float>((j % 2 == 0 ? ratio : -ratio) * static_cast<double>(cap));
    }
    options.softcap = cap;
    attention(engine, query, key, value, out, options);
    for (std::int64_t j = 0; j < kKeys; ++j) {
      const double truth =
          static_cast<double>(cap) * std::tanh(static_cast<double>(key(0, j, 0, 0)) / static_cast<double>(cap));
      // The scale, the scaled product, 2.5 ULP of tanh and the product with the cap round.
      EXPECT_NEAR(static_cast<double>(scores(0, 0, 0, j)), truth, 8 * test::kUnitRoundoff * std::abs(truth))
          << "cap " << cap << ", score " << key(0, j, 0, 0);
    }
  }
}

HEADLIGHT_ON_EVERY_ISA(AttentionTest);

}  // namespace headlight::attention_test
