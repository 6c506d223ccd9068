// Products whose B is packed as float16 and A stays float32: against the twin over the rounded B, and with the bits of
// the product whose B is float32 and holds those numbers.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/gemm.h"
#include "headlight/storage_types.h"
#include "support/compare.h"
#include "support/gemm_case.h"
#include "support/gemm_types.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/random.h"

namespace headlight::test::gemm_float16_test {

using GemmFloat16 = EachIsa;
HEADLIGHT_ON_EVERY_ISA(GemmFloat16);

PackedMatrix packed(Engine& engine, const View<const float, 2>& b, Transpose transpose_b = Transpose::no) {
  return {engine, b, transpose_b, NumberType::float16};
}

void check(Engine& engine, Random& random, const GemmCase& made) {
  SCOPED_TRACE(made.text());
  GemmOperands operands(random, made);
  const GemmTruth truth = gemm_truth(operands, NumberType::float16);
  const PackedMatrix half = packed(engine, operands.b.view(), made.transpose_b);
  Matrix expected = operands.c;
  round_to_float16(operands.b.view());
  gemm(engine, operands.a.view(), PackedMatrix(engine, operands.b.view(), made.transpose_b), expected.view(),
       operands.options);
  gemm(engine, operands.a.view(), half, operands.c.view(), operands.options);
  EXPECT_TRUE(same_bits(operands.c.view(), expected.view()));
  EXPECT_TRUE(agrees(operands.c.view(), truth));
  EXPECT_TRUE(gaps_are_untouched(operands.c));
}

TEST_P(GemmFloat16, HasTheBitsOfFloatsOnRaggedSizes) {
  Engine engine(options());
  for_ragged_cases([&](Random& random, const GemmCase& made) { check(engine, random, made); });
}

TEST_P(GemmFloat16, HasTheBitsOfFloatsForEveryTile) {
  Engine engine(options());
  for_cases_of_every_tile([&](Random& random, const GemmCase& made) { check(engine, random, made); });
}

// Few rows, which go over several panels at once, and more; one worker and three.
TEST_P(GemmFloat16, HasTheBitsOfFloatsInBlocksOfDepth) {
  Random random(3);
  for (const std::int64_t k : count(std::vector{767, 768, 769, 776, 1601, 2304}, std::vector{769, 800})) {
    for (const std::int64_t m : {1, 2, 3, 4, 9, 10, 61}) {
      GemmCase made;
      made.m = m, made.n = 99, made.k = k, made.alpha = 0.5f, made.bias = true, made.residual = true;
      for (const int threads : {1, 3}) {
        Engine engine(options(threads));
        check(engine, random, made);
      }
    }
  }
}

// Each number by itself, times 1, in the last of so many rows.
std::vector<float> packed_numbers(Engine& engine, const std::vector<float>& values, std::int64_t rows) {
  const auto size = static_cast<std::int64_t>(values.size());
  Tensor<float, 2> ones({rows, 1}), c({rows, size});
  for (float& one : ones) one = 1;
  gemm(engine, ones, packed(engine, View<const float, 2>(values.data(), {1, size})), c);
  return {&c(rows - 1, 0), &c(rows - 1, 0) + size};
}

TEST_P(GemmFloat16, RoundsToNearestEven) {
  Engine engine(options());
  Random random(5);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0x1p-24f, -0x1p-25f, 0x1.8p-25f, 0x1.ffcp-15f, 0x1.ffep-15f, 65504,        65519.99f,
                               65520,    -65520,    kInfinity,  -kInfinity,   0x1p-149f,    std::nanf("")};
  for (std::uint32_t bits = 0; bits < 0x10000; bits += 7) {
    values.push_back(static_cast<float>(headlight::Float16::from_bits(static_cast<std::uint16_t>(bits))));
  }
  for (int repeat = 0; repeat < 3000; ++repeat) {
    values.push_back(std::ldexp(random.uniform(), static_cast<int>(random.integer(-30, 18))));
  }
  for (const std::int64_t rows : {1, 20}) {
    const std::vector<float> found = packed_numbers(engine, values, rows);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto expected = static_cast<float>(headlight::Float16(values[i]));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found[i])) << i;
      } else {
        EXPECT_EQ(found[i], expected) << values[i];
      }
    }
  }
}

TEST_P(GemmFloat16, NotANumberAndInfinityReachTheirRowAndColumnAlone) {
  Engine engine(options());
  Random random(6);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), 1e6f}) {
    for (const std::int64_t m : {5, 14}) {
      Matrix a(random, m, 9, 0), b(random, 9, 35, 0), c(random, m, 35, 0);
      a.view()(3, 4) = bad;
      b.view()(8, 33) = bad;  // 10⁶ is infinite as float16, and no more than large in A
      gemm(engine, a.view(), packed(engine, b.view()), c.view());
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < 35; ++j) {
          EXPECT_EQ(std::isfinite(c.view()(i, j)), (i != 3 || bad == 1e6f) && j != 33) << i << ", " << j;
        }
      }
    }
  }
}

TEST(GemmFloat16Memory, IsThatOfTheNumbers) {
  Engine engine(EngineOptions{.threads = 1});
  const Tensor<float, 2> b({96, 192});
  const PackedMatrix half = packed(engine, b);
  EXPECT_EQ(half.type(), NumberType::float16);
  EXPECT_EQ(half.bytes(), std::size_t{96 * 192 * 2});
}

}  // namespace headlight::test::gemm_float16_test
