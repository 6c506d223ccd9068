// Products whose B is packed as int8: against the twin on quantized operands, within the documented bound of the exact
// product, and bit by bit by the documented formula, on every instruction set.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/gemm.h"
#include "reference/number_types.h"
#include "support/compare.h"
#include "support/gemm_case.h"
#include "support/gemm_packed.h"
#include "support/gemm_types.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::test::gemm_int8_test {

using reference::Int8Numbers;
using GemmInt8 = EachIsaAndFeature;
HEADLIGHT_ON_EVERY_FEATURE(GemmInt8);

constexpr std::int64_t kLongestBlock = 16384;

PackedMatrix packed(Engine& engine, const View<const float, 2>& b, Transpose transpose_b = Transpose::no) {
  return {engine, b, transpose_b, NumberType::int8};
}

TEST_P(GemmInt8, AgreesWithTheTwinOnRaggedSizes) {
  Engine engine(options());
  for_ragged_cases([&](Random& random, const GemmCase& made) { expect_twin(engine, random, made, NumberType::int8); });
}

TEST_P(GemmInt8, AgreesWithTheTwinForEveryTile) {
  Engine engine(options());
  for_cases_of_every_tile(
      [&](Random& random, const GemmCase& made) { expect_twin(engine, random, made, NumberType::int8); });
}

// ((float)D · t) · s for each block of K, blocks added in ascending order.
float by_the_formula(const Int8Numbers& a, const Int8Numbers& b) {
  const auto depth = static_cast<std::int64_t>(a.integers.size());
  const std::int64_t blocks = std::max<std::int64_t>((depth + kLongestBlock - 1) / kLongestBlock, 1);
  const std::int64_t length = blocks == 1 ? depth : ((depth + blocks - 1) / blocks + 63) / 64 * 64;
  float total = 0;
  for (std::int64_t first = 0; first < depth; first += length) {
    std::int32_t sum = 0;
    for (std::int64_t k = first; k < std::min(depth, first + length); ++k) {
      const auto at = static_cast<std::size_t>(k);
      sum += (a.integers[at] - a.zero_point) * b.integers[at];
    }
    const float of_block = static_cast<float>(sum) * b.scale * a.scale;
    total = first == 0 ? of_block : total + of_block;
  }
  return total;
}

void expect_formula(const View<const float, 2>& c, const View<const float, 2>& a, const View<const float, 2>& b) {
  const std::vector<Int8Numbers> rows = quantized_a(a), columns = quantized_b(b);
  Tensor<float, 2> expected(c.shape);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
      expected(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)) = by_the_formula(rows[i], columns[j]);
    }
  }
  EXPECT_TRUE(same_bits(c, expected.view()));
}

TEST_P(GemmInt8, HasTheBitsOfTheDocumentedFormula) {
  Engine engine(options(2));
  Random random(3);
  for (const std::int64_t k : {1, 2, 3, 4, 5, 31, 64, 767, 768, 769, 3073}) {
    SCOPED_TRACE("K = " + std::to_string(k));
    const Tensor<float, 2> a = random.normal_tensor<2>({37, k}), b = random.normal_tensor<2>({k, 107});
    Tensor<float, 2> c({37, 107});
    gemm(engine, a, packed(engine, b), c);
    expect_formula(c.view(), a.view(), b.view());
  }
}

TEST_P(GemmInt8, AddsBlocksOfALongDepthInOrder) {
  Engine engine(options());
  Random random(4);
  for (const std::int64_t k : {kLongestBlock, kLongestBlock + 1, 3 * kLongestBlock - 5}) {
    SCOPED_TRACE("K = " + std::to_string(k));
    const Tensor<float, 2> a = random.normal_tensor<2>({2, k}), b = random.normal_tensor<2>({k, 3});
    Tensor<float, 2> c({2, 3});
    gemm(engine, a, packed(engine, b), c);
    expect_formula(c.view(), a.view(), b.view());
  }
}

// The largest sums that there are, of one sign: 255 · 127 for every k.
TEST_P(GemmInt8, HoldsTheLargestSums) {
  Engine engine(options());
  for (const std::int64_t k : {kLongestBlock, 5 * kLongestBlock}) {
    const std::vector<float> ones(static_cast<std::size_t>(k), 1.0f), minus(static_cast<std::size_t>(k), -1.0f);
    std::vector<float> a_values = ones;
    a_values.insert(a_values.end(), minus.begin(), minus.end());
    std::vector<float> b_values = a_values;
    Tensor<float, 2> c({2, 2});
    const View<const float, 2> a(a_values.data(), {2, k}), b(b_values.data(), {2, k});
    gemm(engine, a, packed(engine, b, Transpose::yes), c);
    const auto size = static_cast<float>(k);
    EXPECT_NEAR(c(0, 0), size, 1e-6f * size);
    EXPECT_NEAR(c(0, 1), -size, 1e-6f * size);
    EXPECT_NEAR(c(1, 0), -size, 1e-6f * size);
    EXPECT_NEAR(c(1, 1), size, 1e-6f * size);
  }
}

// Whole numbers that fill their ranges, and those of all ones, are quantized without error.
TEST_P(GemmInt8, IsExactWhereScalesAreOne) {
  Engine engine(options());
  Random random(5);
  Tensor<float, 2> a({7, 93}), b({93, 50}), c({7, 50});
  for (float& x : a) x = static_cast<float>(random.integer(-100, 155));
  for (float& x : b) x = static_cast<float>(random.integer(-127, 127));
  for (std::int64_t i = 0; i < 7; ++i) {
    a(i, 3) = -100;
    a(i, 90) = 155;
  }
  for (std::int64_t j = 0; j < 50; ++j) b(j, j) = j % 2 == 0 ? 127.0f : -127.0f;
  gemm(engine, a, packed(engine, b), c);
  for (std::int64_t i = 0; i < 7; ++i) {
    for (std::int64_t j = 0; j < 50; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < 93; ++k) sum += a(i, k) * b(k, j);
      EXPECT_EQ(c(i, j), sum) << i << ", " << j;
    }
  }
}

// |C − exact| ≤ Σ_k (½ s_i |b̂_kj| + ½ t_j |a_ik|), a little more for the inverses' rounding, and that of the result.
void expect_bound(const View<const float, 2>& c, const View<const float, 2>& a, const View<const float, 2>& b) {
  const std::vector<Int8Numbers> rows = quantized_a(a), columns = quantized_b(b);
  const double half = 0.5 + 0x1p-14;
  for (std::int64_t i = 0; i < c.extent(0); ++i) {
    for (std::int64_t j = 0; j < c.extent(1); ++j) {
      const Int8Numbers& row = rows[static_cast<std::size_t>(i)];
      const Int8Numbers& column = columns[static_cast<std::size_t>(j)];
      double exact = 0, of_a = 0, of_b = 0;
      for (std::int64_t k = 0; k < a.extent(1); ++k) {
        exact += static_cast<double>(a(i, k)) * static_cast<double>(b(k, j));
        of_a += std::abs(static_cast<double>(a(i, k)));
        of_b += std::abs(column.value(static_cast<std::size_t>(k)));
      }
      const double quantizing = half * (row.scale * of_b + column.scale * of_a);
      // Below 2⁻¹²⁶ a rounding is 2⁻¹⁵⁰ at most.
      const double rounding = 4 * 0x1p-24 * (std::abs(exact) + quantizing) + 0x1p-149;
      EXPECT_LE(std::abs(static_cast<double>(c(i, j)) - exact), quantizing + rounding) << i << ", " << j;
    }
  }
}

TEST_P(GemmInt8, KeepsToItsErrorBoundWithOutliersAndTinyNumbers) {
  Engine engine(options());
  const auto product = [&](const Tensor<float, 2>& a, const Tensor<float, 2>& b) {
    Tensor<float, 2> c({a.shape()[0], b.shape()[1]});
    gemm(engine, a, packed(engine, b), c);
    expect_bound(c.view(), a.view(), b.view());
    expect_formula(c.view(), a.view(), b.view());
  };
  // Rows of the other sign.
  const auto add = [](Tensor<float, 2>& a, Tensor<float, 2>&) {
    for (std::int64_t k = 0; k < 120; ++k) a(2, k) = -std::abs(a(2, k)) - 3;
  };
  for_outliers_and_tiny_numbers(product, add);
}

TEST_P(GemmInt8, NotANumberAndInfinityMakeTheirRowAndColumnNotANumber) {
  Engine engine(options());
  expect_bad_rows_and_columns(engine, NumberType::int8);
}

TEST_P(GemmInt8, TakesAQuarterOfTheMemoryAndTwoNumbersAColumn) {
  Engine engine(options());
  const Tensor<float, 2> b({96, 192});
  const PackedMatrix whole(engine, b), quarter = packed(engine, b);
  EXPECT_EQ(quarter.type(), NumberType::int8);
  EXPECT_EQ(4 * quarter.bytes(), whole.bytes() + 4 * 192 * 2 * sizeof(float));
}

}  // namespace headlight::test::gemm_int8_test
