// The lengths of heads' parts against the plain twin, and the sum of the parts against what a layer gives, for every
// way to put heads together.
#include "headlight/analysis/head_parts.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "headlight/layers/multi_head_attention.h"
#include "reference/head_parts.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/random.h"

namespace headlight::test::head_parts_test {

TEST(HeadParts, AgreeWithTheTwin) {
  Random random(5);
  for (const Isa isa : available_isas()) {
    Engine engine({.isa = isa});
    // The last product may be as wide as the heads side by side, or wider, or narrower.
    for (const auto& [rows, all, heads, width] :
         {std::array<std::int64_t, 4>{1, 4, 1, 4}, {7, 24, 3, 24}, {300, 48, 12, 50}, {5, 9, 9, 7}}) {
      const Tensor<float, 2> outputs = random.normal_tensor<2>({rows, all});
      for (const std::int64_t columns : {all, all / heads}) {
        const Tensor<float, 2> weight = random.normal_tensor<2>({width, columns});
        Tensor<float, 2> norms({rows, heads});
        analysis::head_part_norms(engine, outputs, weight, norms);
        Tensor<double, 2> expected({rows, heads});
        const Tensor<double, 2> wide_outputs = converted<double>(outputs);
        const Tensor<double, 2> wide_weight = converted<double>(weight);
        reference::head_part_norms<double>(wide_outputs.view(), wide_weight.view(), expected.view());
        for (std::int64_t n = 0; n < rows; ++n) {
          for (std::int64_t head = 0; head < heads; ++head) {
            EXPECT_NEAR(norms(n, head), expected(n, head), 1e-5 * (1 + expected(n, head))) << name(isa);
          }
        }
      }
    }
  }
}

// Nor do rows beside a row, of whatever number.
TEST(HeadParts, ThreadsChangeNoBit) {
  Random random(6);
  constexpr std::int64_t kRows = 267, kColumns = 384, kParts = 6;
  const Tensor<float, 2> outputs = random.normal_tensor<2>({kRows, kColumns});
  const Tensor<float, 2> weight = random.normal_tensor<2>({kColumns, kColumns});
  Tensor<float, 2> expected({kRows, kParts}), found({kRows, kParts});
  Engine alone({.threads = 1}), together({.threads = 3});
  analysis::head_part_norms(alone, outputs, weight, expected);
  analysis::head_part_norms(together, outputs, weight, found);
  EXPECT_TRUE(same_bits(found, expected));
  for (std::int64_t n = 0; n < kRows; ++n) {
    const View<const float, 2> row(&outputs(n, 0), {1, kColumns});
    Tensor<float, 2> norms({1, kParts});
    analysis::head_part_norms(alone, row, weight, norms);
    for (std::int64_t part = 0; part < kParts; ++part) ASSERT_EQ(norms(0, part), expected(n, part)) << n;
  }
}

constexpr std::int64_t kBatch = 2, kLength = 19, kWidth = 24, kHeads = 3, kHeadDim = 8;

MultiHeadAttention random_layer(Random& random, Merge merge) {
  MultiHeadAttention layer({.width = kWidth, .heads = kHeads, .merge = merge});
  for (const Parameter& parameter : layer.parameters()) {
    const bool is_matrix = parameter.shape.size() == 2;
    const float scale = is_matrix ? 1 / std::sqrt(static_cast<float>(parameter.shape[1])) : 1.0f;
    for (float& value : parameter.values) value = scale * random.normal();
  }
  return layer;
}

// The part of one head of one row in float64, and how far float32 sums of E or D products may be from it.
struct Part {
  Part(const float* scaled, const WeightView& weight, std::int64_t head) : values(kWidth) {
    const std::int64_t columns = weight.shape[1];
    double of_head = 0, of_weight = 0;
    for (std::int64_t d = 0; d < kHeadDim; ++d) {
      const auto x = static_cast<double>(scaled[head * kHeadDim + d]);
      of_head += x * x;
      for (std::int64_t e = 0; e < kWidth; ++e) {
        const std::int64_t column = (head * kHeadDim + d) % columns;
        const auto w = static_cast<double>(weight.values[static_cast<std::size_t>(e * columns + column)]);
        values[static_cast<std::size_t>(e)] += w * x;
        of_weight += w * w;
      }
    }
    for (const double value : values) norm += value * value;
    norm = std::sqrt(norm);
    error = (kWidth + 8) * kUnitRoundoff * std::sqrt(of_head * of_weight);
  }
  std::vector<double> values;
  double norm = 0, error = 0;
};

TEST(HeadParts, OfEveryMergeSumToWhatTheLayerGives) {
  Random random(6);
  for (const Isa isa : available_isas()) {
    Engine engine({.isa = isa});
    for (int number = 0; number < 6; ++number) {
      const auto merge = static_cast<Merge>(number);
      SCOPED_TRACE(std::string(name(isa)) + ", " + std::string(name(merge)));
      const MultiHeadAttention layer = random_layer(random, merge);
      const Weights weights = layer.weights();
      const WeightView& weight = weights.at("out_proj.weight");
      const std::span<const float> bias_values = weights.at("out_proj.bias").values;
      const std::vector<double> bias(bias_values.begin(), bias_values.end());
      const Tensor<float, 3> x = random.normal_tensor<3>({kBatch, kLength, kWidth});
      Tensor<float, 3> y(x.shape()), plain(x.shape()), scaled(x.shape());
      layer.forward(engine, x, x, x, y, {}, {}, {.scaled_outputs = scaled});
      layer.forward(engine, x, x, x, plain);
      EXPECT_TRUE(same_bits(y.view(), plain.view()));
      // The layer's own word for one part: its output with all other heads silent.
      std::array<Tensor<float, 3>, kHeads> alone;
      for (std::int64_t head = 0; head < kHeads; ++head) {
        const std::array<std::int64_t, 2> others = {(head + 1) % kHeads, (head + 2) % kHeads};
        Tensor<float, 3>& given = alone[static_cast<std::size_t>(head)] = Tensor<float, 3>(x.shape());
        layer.forward(engine, x, x, x, given, {}, {}, {.silenced = others});
      }
      constexpr std::int64_t kRows = kBatch * kLength;
      Tensor<float, 2> norms({kRows, kHeads});
      analysis::head_part_norms(engine, {scaled.data(), {kRows, kWidth}},
                                {weight.values.data(), {kWidth, weight.shape[1]}}, norms);
      for (std::int64_t n = 0; n < kRows; ++n) {
        std::vector<double> sum = bias;
        double error = 0;
        for (std::int64_t head = 0; head < kHeads; ++head) {
          const Part part(scaled.data() + n * kWidth, weight, head);
          EXPECT_NEAR(norms(n, head), part.norm, part.error);
          error += part.error;
          for (std::int64_t e = 0; e < kWidth; ++e) {
            const auto at = static_cast<std::size_t>(e);
            sum[at] += part.values[at];
            EXPECT_NEAR(alone[static_cast<std::size_t>(head)].data()[n * kWidth + e], bias[at] + part.values[at],
                        part.error + kUnitRoundoff * std::abs(bias[at]));
          }
        }
        for (std::int64_t e = 0; e < kWidth; ++e) {
          const auto at = static_cast<std::size_t>(e);
          EXPECT_NEAR(y.data()[n * kWidth + e], sum[at], error + kUnitRoundoff * std::abs(sum[at]));
        }
      }
    }
  }
}

TEST(HeadParts, NoRowsAndWrongShapes) {
  Engine engine({.threads = 1});
  Tensor<float, 2> none({0, 8}), weight({8, 8}), norms({0, 2});
  analysis::head_part_norms(engine, none, weight, norms);
  Tensor<float, 2> outputs({3, 8}), three({3, 3}), zero({3, 0}), short_one({2, 2}), narrow({8, 7});
  EXPECT_THROW(analysis::head_part_norms(engine, outputs, weight, three), std::invalid_argument);
  EXPECT_THROW(analysis::head_part_norms(engine, outputs, weight, zero), std::invalid_argument);
  EXPECT_THROW(analysis::head_part_norms(engine, outputs, weight, short_one), std::invalid_argument);
  EXPECT_THROW(analysis::head_part_norms(engine, outputs, narrow, norms), std::invalid_argument);
}

}  // namespace headlight::test::head_parts_test
