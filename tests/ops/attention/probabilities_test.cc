// Returned probabilities: per head, averaged, all rows or chosen ones, under every mask.
#include <cstdint>
#include <vector>

#include "baseline/attention_unfused.h"
#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "reference/attention.h"
#include "support/attention_case.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::attention_probabilities_test {

class AttentionProbabilitiesTest : public test::EachIsa {};

// Some rows, out of order, the last one twice.
std::vector<std::int64_t> some_rows(std::int64_t query_length) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = query_length - 1; i >= 0; i -= 3) rows.push_back(i);
  if (!rows.empty()) rows.push_back(query_length - 1);
  return rows;
}

void expect_close(Engine& engine, const test::AttentionCase& c, bool chosen_rows) {
  SCOPED_TRACE(c.line());
  const test::AttentionInputs inputs(c);
  const auto run_twin = [&]<class Scalar>(Scalar) {
    Tensor<Scalar, 4> out({c.batch, c.query_length, c.query_heads, c.value_dim});
    Tensor<Scalar, 4> all({c.batch, c.query_heads, c.query_length, c.key_length});
    reference::attention<Scalar>(test::converted<Scalar>(inputs.query), test::converted<Scalar>(inputs.key),
                                 test::converted<Scalar>(inputs.value), out, inputs.options, {{}, all.view()});
    return all;
  };
  const Tensor<double, 4> all_truth = run_twin(double{});
  const Tensor<float, 4> all_plain = run_twin(float{});

  const std::vector<std::int64_t> rows = chosen_rows ? some_rows(c.query_length) : std::vector<std::int64_t>();
  const std::int64_t count = chosen_rows ? static_cast<std::int64_t>(rows.size()) : c.query_length;
  const auto row = [&](std::int64_t r) { return chosen_rows ? rows[static_cast<std::size_t>(r)] : r; };
  Tensor<double, 4> truth({c.batch, c.query_heads, count, c.key_length});
  Tensor<float, 4> plain(truth.shape());
  Tensor<double, 3> mean({c.batch, count, c.key_length});
  for (std::int64_t b = 0; b < c.batch; ++b) {
    for (std::int64_t h = 0; h < c.query_heads; ++h) {
      for (std::int64_t r = 0; r < count; ++r) {
        for (std::int64_t j = 0; j < c.key_length; ++j) {
          truth(b, h, r, j) = all_truth(b, h, row(r), j);
          plain(b, h, r, j) = all_plain(b, h, row(r), j);
          mean(b, r, j) += truth(b, h, r, j) / static_cast<double>(c.query_heads);
        }
      }
    }
  }

  Tensor<float, 4> out({c.batch, c.query_length, c.query_heads, c.value_dim});
  Tensor<float, 4> per_head(truth.shape());
  Tensor<float, 3> averaged(mean.shape());
  for (float& element : per_head) element = 1e30f;
  for (float& element : averaged) element = 1e30f;
  AttentionOptions options = inputs.options;
  options.probabilities = {per_head, averaged, rows};
  if (count == 0) return;
  attention(engine, inputs.query, inputs.key, inputs.value, out, options);

  EXPECT_TRUE(test::at_most_twice_the_plain_error(per_head.view(), plain.view(), truth.view()));
  // Each head errs by that much of its own row, whose norm may be √(Lk) times the mean's; sums and the factor add their
  // own rounding.
  const double plain_error = test::worst_row_error(plain.view(), truth.view()).error;
  const double heads = static_cast<double>(c.query_heads);
  const double allowed = 2 * plain_error + (8 + heads) * test::kUnitRoundoff;
  EXPECT_TRUE(test::within(averaged.view(), mean.view(), allowed * std::sqrt(static_cast<double>(c.key_length))));
}

TEST_P(AttentionProbabilitiesTest, EveryOptionAtRandom) {
  Engine engine(options(2));
  const int cases = test::count(120, 30);
  for (int seed = 0; seed < cases; ++seed) {
    const auto c = test::random_attention_case(static_cast<std::uint64_t>(1000 + seed), seed % 8 == 0 ? 300 : 70);
    expect_close(engine, c, seed % 2 == 0);
  }
}

// Asking for them changes nothing else, and the number of threads changes nothing in them.
TEST_P(AttentionProbabilitiesTest, SameBits) {
  test::AttentionCase c;
  c.seed = 5;
  c.batch = 2;
  c.query_length = c.key_length = 130;
  c.query_heads = 4;
  c.key_value_heads = 2;
  c.head_dim = c.value_dim = 24;
  c.causal = Causal::top_left;
  const test::AttentionInputs inputs(c);
  Tensor<float, 4> first_out({2, 130, 4, 24});
  Tensor<float, 4> first_per_head({2, 4, 130, 130});
  Tensor<float, 3> first_averaged({2, 130, 130});
  for (const int threads : {1, 2, 3}) {
    Engine engine(options(threads));
    Tensor<float, 4> without({2, 130, 4, 24});
    attention(engine, inputs.query, inputs.key, inputs.value, without, inputs.options);
    Tensor<float, 4> out({2, 130, 4, 24});
    Tensor<float, 4> per_head({2, 4, 130, 130});
    Tensor<float, 3> averaged({2, 130, 130});
    AttentionOptions options = inputs.options;
    options.probabilities = {per_head, averaged, {}};
    attention(engine, inputs.query, inputs.key, inputs.value, out, options);
    EXPECT_TRUE(test::same_bits(out.view(), without.view()));
    if (threads == 1) {
      first_out = std::move(out);
      first_per_head = std::move(per_head);
      first_averaged = std::move(averaged);
      continue;
    }
    EXPECT_TRUE(test::same_bits(out.view(), first_out.view()));
    EXPECT_TRUE(test::same_bits(per_head.view(), first_per_head.view()));
    EXPECT_TRUE(test::same_bits(averaged.view(), first_averaged.view()));
  }
}

// Packed sequences of queries and keys of their own lengths, under a causal rule, a bias and chosen rows.
TEST_P(AttentionProbabilitiesTest, OwnKeysAreTheColumnsOfTheRowsSequence) {
  Engine engine(options(2));
  const std::vector<std::int64_t> query_offsets = {0, 5, 5, 70, 90};
  const std::vector<std::int64_t> key_offsets = {0, 9, 30, 97, 97};
  const std::vector<std::int64_t> rows = {89, 0, 69, 5, 6, 7, 40, 3};
  test::Random random(9);
  const auto query = random.normal_tensor<4>({1, 90, 4, 24});
  const auto key = random.normal_tensor<4>({1, 97, 2, 24});
  const auto bias = random.normal_tensor<4>({1, 1, 90, 97});
  for (auto* const attend : {&attention, &baseline::attention_unfused}) {
    AttentionOptions options{
        .causal = Causal::bottom_right, .query_offsets = query_offsets, .key_offsets = key_offsets};
    options.bias = bias;
    Tensor<float, 4> out({1, 90, 4, 24}), all({1, 4, 8, 97}), own({1, 4, 8, 67});
    Tensor<float, 3> mean({1, 8, 97}), own_mean({1, 8, 67});
    for (float& element : own) element = 1e30f;
    options.probabilities = {all, mean, rows};
    attend(engine, query, key, key, out, options);
    options.probabilities = {own, own_mean, rows, true};
    attend(engine, query, key, key, out, options);
    for (std::int64_t r = 0; r < 8; ++r) {
      const std::int64_t row = rows[static_cast<std::size_t>(r)];
      const std::size_t s = row < 5 ? 0 : row < 70 ? 2 : 3;
      for (std::int64_t j = 0; j < 67; ++j) {
        const bool inside = key_offsets[s] + j < key_offsets[s + 1];
        EXPECT_EQ(own(0, 3, r, j), inside ? all(0, 3, r, key_offsets[s] + j) : 0.0f) << row << ", " << j;
        EXPECT_EQ(own_mean(0, r, j), inside ? mean(0, r, key_offsets[s] + j) : 0.0f) << row << ", " << j;
      }
    }
    options.query_offsets = options.key_offsets = {};
    EXPECT_THROW(attend(engine, query, key, key, out, options), std::invalid_argument);
  }
}

// The mean over no heads is written, and is no NaN.
TEST_P(AttentionProbabilitiesTest, NoHeadsLookNowhere) {
  Engine engine(options());
  for (const std::int64_t key_value_heads : {0, 2}) {
    const Tensor<float, 4> query({2, 5, 0, 8}), key({2, 7, key_value_heads, 8});
    Tensor<float, 4> out({2, 5, 0, 8});
    for (auto* const attend : {&attention, &baseline::attention_unfused}) {
      Tensor<float, 3> averaged({2, 5, 7});
      for (float& element : averaged) element = 1e30f;
      AttentionOptions given;
      given.probabilities.averaged = averaged;
      attend(engine, query, key, key, out, given);
      for (const float element : averaged) EXPECT_EQ(element, 0.0f);
    }
  }
}

HEADLIGHT_ON_EVERY_ISA(AttentionProbabilitiesTest);

}  // namespace headlight::attention_probabilities_test
