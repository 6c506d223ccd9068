// Products whose B is packed as int4: against the twin on quantized operands, bit by bit against the documented formula
// with and without the instructions that some CPUs have for it, and within the documented error.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/gemm.h"
#include "support/compare.h"
#include "support/gemm_case.h"
#include "support/gemm_packed.h"
#include "support/gemm_types.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/random.h"

namespace headlight::test::gemm_int4_test {

using reference::Int8Numbers;

using GemmInt4 = EachIsaAndFeature;
HEADLIGHT_ON_EVERY_FEATURE(GemmInt4);

constexpr std::int64_t kLongestBlock = 16384;

PackedMatrix packed(Engine& engine, const View<const float, 2>& b, Transpose transpose_b = Transpose::no) {
  return {engine, b, transpose_b, NumberType::int4};
}

TEST_P(GemmInt4, AgreesWithTheTwinOnRaggedSizes) {
  Engine engine(options());
  for_ragged_cases([&](Random& random, const GemmCase& made) { expect_twin(engine, random, made, NumberType::int4); });
}

TEST_P(GemmInt4, AgreesWithTheTwinForEveryTile) {
  Engine engine(options());
  for_cases_of_every_tile(
      [&](Random& random, const GemmCase& made) { expect_twin(engine, random, made, NumberType::int4); });
}

// ((float)D · t) · s of each group added in ascending order, in blocks that are whole groups.
float by_the_formula(const std::vector<Int8Numbers>& a, const std::vector<Int8Numbers>& b) {
  const auto groups = static_cast<std::int64_t>(a.size());
  const std::int64_t blocks = (groups * 32 + kLongestBlock - 1) / kLongestBlock;
  const std::int64_t length = (groups + blocks - 1) / blocks;
  float total = 0;
  for (std::int64_t first = 0; first < groups; first += length) {
    float of_block = 0;
    for (std::int64_t g = first; g < std::min(groups, first + length); ++g) {
      const Int8Numbers &row = a[static_cast<std::size_t>(g)], &column = b[static_cast<std::size_t>(g)];
      std::int32_t sum = 0;
      for (std::size_t k = 0; k < row.integers.size(); ++k) sum += row.integers[k] * column.integers[k];
      const float of_group = static_cast<float>(sum) * column.scale * row.scale;
      of_block = of_block + of_group;
    }
    total = first == 0 ? of_block : total + of_block;
  }
  return total;
}

void expect_formula(const View<const float, 2>& c, const View<const float, 2>& a, const View<const float, 2>& b) {
  Tensor<float, 2> expected(c.shape);
  for (std::int64_t j = 0; j < c.extent(1); ++j) {
    const std::vector<Int8Numbers> column = grouped(matrix_line(b, j, true), reference::symmetric_int4);
    for (std::int64_t i = 0; i < c.extent(0); ++i) {
      expected(i, j) = by_the_formula(grouped(matrix_line(a, i, false), reference::symmetric_int8), column);
    }
  }
  EXPECT_TRUE(same_bits(c, expected.view()));
}

// Groups and words that end early, few rows, which go over several panels at once, and more.
TEST_P(GemmInt4, HasTheBitsOfTheDocumentedFormula) {
  Engine engine(options(2));
  Random random(3);
  for (const std::int64_t k : {1, 7, 8, 9, 31, 32, 33, 64, 100, 769, 3073}) {
    for (const std::int64_t m : {1, 2, 3, 11}) {
      SCOPED_TRACE("K = " + std::to_string(k) + ", M = " + std::to_string(m));
      const Tensor<float, 2> a = random.normal_tensor<2>({m, k}), b = random.normal_tensor<2>({k, 203});
      Tensor<float, 2> c({m, 203});
      gemm(engine, a, packed(engine, b), c);
      expect_formula(c.view(), a.view(), b.view());
    }
  }
}

TEST_P(GemmInt4, AddsBlocksOfALongDepthInOrder) {
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

// Whole numbers that fill their ranges are quantized without error.
TEST_P(GemmInt4, IsExactWhereScalesAreOne) {
  Engine engine(options());
  Random random(5);
  for (const std::int64_t m : {1, 7, 40}) {
    Tensor<float, 2> a({m, 93}), b({93, 50}), c({m, 50});
    for (float& x : a) x = static_cast<float>(random.integer(-127, 127));
    for (float& x : b) x = static_cast<float>(random.integer(-7, 7));
    for (const std::int64_t k : {3, 40, 92}) {
      for (std::int64_t i = 0; i < m; ++i) a(i, k) = i % 2 == 0 ? 127.0f : -127.0f;
      for (std::int64_t j = 0; j < 50; ++j) b(k, j) = j % 2 == 0 ? 7.0f : -7.0f;
    }
    gemm(engine, a, packed(engine, b), c);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < 50; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < 93; ++k) sum += a(i, k) * b(k, j);
        EXPECT_EQ(c(i, j), sum) << i << ", " << j;
      }
    }
  }
}

// |C − exact| ≤ Σ_g Σ_k (½ s_ig |b̂_kj| + ½ t_gj |a_ik|), a little more for the inverses' rounding, and two roundings
// for each group.
void expect_bound(const View<const float, 2>& c, const View<const float, 2>& a, const View<const float, 2>& b) {
  const double half = 0.5 + 0x1p-14;
  for (std::int64_t j = 0; j < c.extent(1); ++j) {
    const std::vector<Int8Numbers> column = grouped(matrix_line(b, j, true), reference::symmetric_int4);
    for (std::int64_t i = 0; i < c.extent(0); ++i) {
      const std::vector<Int8Numbers> row = grouped(matrix_line(a, i, false), reference::symmetric_int8);
      double exact = 0, size = 0, quantizing = 0;
      for (std::int64_t k = 0; k < a.extent(1); ++k) {
        const auto group = static_cast<std::size_t>(k / 32), at = static_cast<std::size_t>(k % 32);
        const double left = a(i, k), right = b(k, j), kept = column[group].value(at);
        exact += left * right;
        size += std::abs(row[group].value(at) * kept);
        quantizing += half * (row[group].scale * std::abs(kept) + column[group].scale * std::abs(left));
      }
      const double roundings = 2 * static_cast<double>(row.size()) + 1;
      // Below 2⁻¹²⁶ a rounding is 2⁻¹⁵⁰ at most.
      const double rounding = roundings * (0x1p-24 * 1.01 * size + 0x1p-150);
      EXPECT_LE(std::abs(static_cast<double>(c(i, j)) - exact), quantizing + rounding) << i << ", " << j;
    }
  }
}

TEST_P(GemmInt4, KeepsToItsErrorBoundWithOutliersAndTinyNumbers) {
  Engine engine(options());
  const auto product = [&](const Tensor<float, 2>& a, const Tensor<float, 2>& b) {
    Tensor<float, 2> c({a.shape()[0], b.shape()[1]});
    gemm(engine, a, packed(engine, b), c);
    expect_bound(c.view(), a.view(), b.view());
    expect_formula(c.view(), a.view(), b.view());
  };
  // 7 · 2⁻⁸ of a scale beyond the largest integer's, the most that a rounded scale cuts off.
  const auto add = [](Tensor<float, 2>&, Tensor<float, 2>& b) {
    for (std::int64_t k = 0; k < 120; ++k) b(k, 7) = 7 * 0x1.01p0f;
  };
  for_outliers_and_tiny_numbers(product, add);
}

TEST_P(GemmInt4, NotANumberAndInfinityMakeTheirRowAndColumnNotANumber) {
  Engine engine(options());
  expect_bad_rows_and_columns(engine, NumberType::int4);
}

TEST_P(GemmInt4, TakesFourBitsANumberAndTwoBytesAGroup) {
  Engine engine(options());
  const PackedMatrix made = packed(engine, Tensor<float, 2>({128, 192}));
  EXPECT_EQ(made.type(), NumberType::int4);
  EXPECT_EQ(made.bytes(), std::size_t{128 * 192 / 2 + 128 / 32 * 192 * 2});
}

}  // namespace headlight::test::gemm_int4_test
