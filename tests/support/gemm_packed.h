// What products of every packed type are tested by.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"
#include "headlight/gemm.h"
#include "support/compare.h"
#include "support/gemm_case.h"
#include "support/gemm_types.h"
#include "support/random.h"

namespace headlight::test {

// A product against the twin on operands as the type leaves them.
inline void expect_twin(Engine& engine, Random& random, const GemmCase& made, NumberType type) {
  SCOPED_TRACE(made.text());
  GemmOperands operands(random, made);
  const GemmTruth truth = gemm_truth(operands, type);
  gemm(engine, operands.a.view(), PackedMatrix(engine, operands.b.view(), made.transpose_b, type), operands.c.view(),
       operands.options);
  EXPECT_TRUE(agrees(operands.c.view(), truth));
  EXPECT_TRUE(gaps_are_untouched(operands.c));
}

[[nodiscard]] inline Tensor<float, 2> times(const Tensor<float, 2>& matrix, float factor) {
  Tensor<float, 2> made(matrix.shape());
  std::transform(matrix.begin(), matrix.end(), made.begin(), [&](float x) { return x * factor; });
  return made;
}

// product(a, b) over normal numbers, and over those that are hard to quantize: constant rows and such of zeros, a huge
// number in one row and in one column, and what add(a, b) writes; then as small and as large as floats can be.
template <class Product, class Add>
void for_outliers_and_tiny_numbers(const Product& product, const Add& add) {
  Random random(6);
  Tensor<float, 2> a = random.normal_tensor<2>({20, 120}), b = random.normal_tensor<2>({120, 40});
  product(a, b);
  for (std::int64_t k = 0; k < 120; ++k) {
    a(1, k) = std::abs(a(1, k)) + 3;
    a(3, k) = 0.1f;
    a(4, k) = k == 7 ? -0.0f : 0.0f;
    b(k, 5) = 0;
  }
  add(a, b);
  a(5, 17) = 1e6f;
  a(6, 18) = -1e30f;
  b(19, 6) = -1e7f;
  product(a, b);
  for (const float size : {0x1p-100f, 0x1p-126f, 0x1p-133f, 0x1p-148f}) {
    SCOPED_TRACE(size);
    const Tensor<float, 2> tiny = times(a, size), small = times(b, size);
    product(tiny, b);
    product(a, small);
    product(tiny, small);
  }
  // Ranges that float32 does not hold.
  const float greatest = std::numeric_limits<float>::max();
  for (std::int64_t k = 0; k < 120; ++k) a(8, k) = k % 3 == 0 ? greatest : -greatest;
  product(a, times(b, 1e-13f));
}

// Of quantized operands: NaN and infinity make their whole row and column NaN.
inline void expect_bad_rows_and_columns(Engine& engine, NumberType type) {
  Random random(7);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad :
       {std::bit_cast<float>(0x7f800001u), std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
    for (const Transpose transpose : {Transpose::no, Transpose::yes}) {
      Matrix a(random, 40, 40, 0), b(random, 40, 40, 0), c(random, 40, 40, 0);
      const GemmOptions asked{.transpose_a = transpose, .alpha = 0};
      a.view()(3, 3) = bad;
      b.view()(33, 33) = bad;
      gemm(engine, a.view(), PackedMatrix(engine, b.view(), transpose, type), c.view(), asked);
      for (std::int64_t i = 0; i < 40; ++i) {
        for (std::int64_t j = 0; j < 40; ++j) {
          EXPECT_EQ(std::isnan(c.view()(i, j)), i == 3 || j == 33) << i << ", " << j;
        }
      }
    }
  }
}

}  // namespace headlight::test
