// A bias that tells distances alone: a view of one table, whose rows run backwards, and its gradient.
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "ops/attention_backward/row_sums.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/random.h"
#include "support/refusal.h"

namespace headlight::test::distances_test {

constexpr std::int64_t kQueryHeads = 6, kKeyHeads = 2, kHeadDim = 20, kValueDim = 12;

class DistanceBias : public EachIsaAndFeature {};
HEADLIGHT_ON_EVERY_FEATURE(DistanceBias);

// Queries, keys and values of one type, the table of distances, and the same bias written out.
struct Case {
  Case(std::int64_t batch, std::int64_t query_length, std::int64_t key_length, std::uint64_t seed)
      : random(seed),
        query(random.uniform_tensor<4>({batch, query_length, kQueryHeads, kHeadDim})),
        key(random.uniform_tensor<4>({batch, key_length, kKeyHeads, kHeadDim})),
        value(random.uniform_tensor<4>({batch, key_length, kKeyHeads, kValueDim})),
        out_gradient(random.uniform_tensor<4>({batch, query_length, kQueryHeads, kValueDim})),
        table(random.uniform_tensor<2>({kQueryHeads, query_length + key_length - 1})),
        written_out({1, kQueryHeads, query_length, key_length}) {
    for (std::int64_t h = 0; h < kQueryHeads; ++h) {
      for (std::int64_t i = 0; i < query_length; ++i) {
        for (std::int64_t j = 0; j < key_length; ++j) written_out(0, h, i, j) = table(h, j - i + query_length - 1);
      }
    }
  }

  [[nodiscard]] View<const float, 4> view_of_table() const {
    return {table.data() + query.shape()[1] - 1, written_out.shape(), {0, table.shape()[1], -1, 1}};
  }

  Random random;
  Tensor<float, 4> query, key, value, out_gradient;
  Tensor<float, 2> table;
  Tensor<float, 4> written_out;
};

// Of packed sequences, some without tokens, and of whole batches, ragged and longer than a block of keys.
TEST_P(DistanceBias, HasTheBitsAndTheGradientOfTheBiasWrittenOut) {
  const std::vector<std::int64_t> offsets{0, 5, 5, 6, 43, 97};
  for (const bool packed : {true, false}) {
    for (const auto& [rows, keys] : {std::pair{97, 97}, {61, 450}, {1, 9}}) {
      if (packed && rows != keys) continue;
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(keys) + (packed ? " packed" : ""));
      const Case c(packed ? 1 : 2, rows, keys, 5);
      AttentionOptions options, by_table;
      options.softcap = packed ? 2.0f : 0.0f;
      options.causal = keys > 200 ? Causal::bottom_right : Causal::none;
      options.dropout = {.probability = 0.2f, .seed = 9};
      if (packed) options.query_offsets = offsets;
      by_table = options;
      options.bias = c.written_out.view();
      by_table.bias = c.view_of_table();
      Tensor<float, 4> expected(c.out_gradient.shape()), found(c.out_gradient.shape());
      Tensor<float, 3> sums({c.query.shape()[0], kQueryHeads, rows});
      std::vector<Tensor<float, 2>> gradients;
      for (const int threads : {1, 3}) {
        Engine engine(this->options(threads));
        options.log_sum_exp = {};
        attention(engine, c.query.view(), c.key.view(), c.value.view(), expected.view(), options);
        by_table.log_sum_exp = sums.view();
        attention(engine, c.query.view(), c.key.view(), c.value.view(), found.view(), by_table);
        EXPECT_TRUE(same_bits(found, expected));
        Tensor<float, 2>& by_distance = gradients.emplace_back(c.table.shape());
        by_distance(0, 0) = 7;  // it is overwritten
        by_table.log_sum_exp = {};
        const View<const float, 4> query = c.query.view(), key = c.key.view(), value = c.value.view(),
                                   out = found.view(), out_gradient = c.out_gradient.view();
        const ops::RowsOfSum all_rows = {0, 0, rows};
        ops::differentiate_rows(
            engine, "test", {query, key, value, out, sums.view(), out_gradient}, by_table,
            {.rows = {&all_rows, 1}, .distances = {by_distance.data(), {1, kQueryHeads, by_distance.shape()[1]}}});
        Tensor<float, 4> bias_gradient(c.written_out.shape());
        attention_backward(engine, query, key, value, out, sums.view(), out_gradient, {.bias = bias_gradient.view()},
                           options);
        Tensor<double, 2> truth(c.table.shape()), sizes(c.table.shape());
        for (std::int64_t h = 0; h < kQueryHeads; ++h) {
          for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < keys; ++j) {
              truth(h, j - i + rows - 1) += static_cast<double>(bias_gradient(0, h, i, j));
              sizes(h, j - i + rows - 1) += std::abs(static_cast<double>(bias_gradient(0, h, i, j)));
            }
          }
        }
        // Of a sum of at most 450 pairs and two samples, in float32.
        for (std::int64_t n = 0; n < truth.size(); ++n) {
          ASSERT_NEAR(by_distance.data()[n], truth.data()[n], 1000 * kUnitRoundoff * (sizes.data()[n] + 1e-3)) << n;
        }
      }
      EXPECT_TRUE(same_bits(gradients[0], gradients[1]));
    }
  }
}

TEST(DistanceBiasChecks, WhatRunsBackwardsIsCheckedAsTheMemoryThatItIs) {
  Engine engine({.threads = 1});
  const Case c(1, 4, 6, 3);
  AttentionOptions options;
  options.bias = c.view_of_table();
  Tensor<float, 4> out(c.out_gradient.shape());
  const auto says = [&](const View<float, 4>& to) {
    return refusal([&] { attention(engine, c.query.view(), c.key.view(), c.value.view(), to, options); });
  };
  EXPECT_EQ(says(out.view()), "");
  // The table itself is no place for the output; what lies in front of it and behind it is.
  Tensor<float, 1> memory({2 * out.size() + c.table.size()});
  options.bias.data = memory.data() + out.size() + 3;
  EXPECT_EQ(says({memory.data(), out.shape()}), "");
  EXPECT_EQ(says({memory.data() + out.size() + c.table.size(), out.shape()}), "");
  EXPECT_NE(says({memory.data() + 1, out.shape()}).find("out overlaps bias in memory"), std::string::npos);
  EXPECT_NE(says({memory.data() + out.size() + c.table.size() - 1, out.shape()}), "");
  options.bias.strides[2] = INT64_MIN;
  EXPECT_NE(says(out.view()).find("bias has the negative stride"), std::string::npos);
}

// Kernels read a bias upwards along the keys, on the way forward and on the way back.
TEST(DistanceBiasChecks, KeysDoNotRunBackwards) {
  Engine engine({.threads = 1});
  const Case c(1, 4, 6, 3);
  Tensor<float, 4> out(c.out_gradient.shape());
  Tensor<float, 3> sums({1, kQueryHeads, 4});
  Tensor<float, 4> query_gradient(c.query.shape());
  for (const std::int64_t stride : {std::int64_t{-1}, std::int64_t{-2}, std::int64_t{INT64_MIN}}) {
    AttentionOptions options;
    options.bias = c.written_out.view();
    options.bias.data += options.bias.extent(3) - 1;
    options.bias.strides[3] = stride;
    const std::string expected = "bias has the negative stride " + std::to_string(stride) + " on axis 3";
    EXPECT_EQ(refusal([&] { attention(engine, c.query.view(), c.key.view(), c.value.view(), out.view(), options); }),
              "attention: " + expected);
    EXPECT_EQ(refusal([&] {
                attention_backward(engine, c.query.view(), c.key.view(), c.value.view(), out.view(), sums.view(),
                                   c.out_gradient.view(), {.query = query_gradient.view()}, options);
              }),
              "attention_backward: " + expected);
  }
}

}  // namespace headlight::test::distances_test
