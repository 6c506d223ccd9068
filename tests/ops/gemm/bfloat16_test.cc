// Products whose B is packed as bfloat16: against the twin on rounded operands, and bit by bit against the documented
// chain, with and without the instructions that some CPUs have for it.
//
// Where a rounding is one to odd, off by 2⁻²³ and not 2⁻²⁴ at most, a number of the chain goes through half as many and
// one more: it keeps to the twin's bound.
#include <algorithm>
#include <array>
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

namespace headlight::test::gemm_bfloat16_test {

using GemmBFloat16 = EachIsaAndFeature;
HEADLIGHT_ON_EVERY_FEATURE(GemmBFloat16);

PackedMatrix packed(Engine& engine, const View<const float, 2>& b, Transpose transpose_b = Transpose::no) {
  return {engine, b, transpose_b, NumberType::bfloat16};
}

TEST_P(GemmBFloat16, AgreesWithTheTwinOnRaggedSizes) {
  Engine engine(options());
  for_ragged_cases(
      [&](Random& random, const GemmCase& made) { expect_twin(engine, random, made, NumberType::bfloat16); });
}

TEST_P(GemmBFloat16, AgreesWithTheTwinForEveryTile) {
  Engine engine(options());
  for_cases_of_every_tile(
      [&](Random& random, const GemmCase& made) { expect_twin(engine, random, made, NumberType::bfloat16); });
}

// x + y rounded to odd: cut off, and the last bit set where that left something. Of normal floats.
float sum_to_odd(float x, float y) {
  const double sum = static_cast<double>(x) + static_cast<double>(y);
  // What the double has lost (Knuth's TwoSum), which is much less than a float loses.
  const double of_y = sum - static_cast<double>(x);
  const double lost = (static_cast<double>(x) - (sum - of_y)) + (static_cast<double>(y) - of_y);
  auto bits = std::bit_cast<std::uint64_t>(sum);
  const std::uint64_t below = (std::uint64_t{1} << 29) - 1;  // a float has 29 bits less
  if (lost != 0 && (bits & below) == 0 && (lost < 0) != (sum < 0)) --bits;
  const bool is_exact = lost == 0 && (bits & below) == 0;
  const double cut = std::bit_cast<double>(bits & ~below);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(cut)) | (is_exact ? 0u : 1u));
}

// Pairs added to the sum before, the second product of each first.
float fused_block(const float* a, const float* b, std::int64_t depth) {
  float sum = 0;
  for (std::int64_t k = 0; k < depth; k += 2) {
    if (k + 1 < depth) sum = std::fma(a[k + 1], b[k + 1], sum);
    sum = std::fma(a[k], b[k], sum);
  }
  return sum;
}

// As Arm's bfdot has it: the sum of each pair, and that added to the sum before.
float to_odd_block(const float* a, const float* b, std::int64_t depth) {
  float sum = 0;
  for (std::int64_t k = 0; k < depth; k += 2) {
    const float second = k + 1 < depth ? a[k + 1] * b[k + 1] : 0;
    sum = sum_to_odd(sum, sum_to_odd(a[k] * b[k], second));
  }
  return sum;
}

// As AMX has it, all of K: of each 32 numbers the first ones of the pairs and the second ones apart.
float tiles_sum(const float* a, const float* b, std::int64_t depth) {
  float sum = 0;
  for (std::int64_t run = 0; run < depth; run += 32) {
    float chains[2] = {0, 0};
    for (std::int64_t k = run; k < std::min(depth, run + 32); ++k) {
      chains[k % 2] = std::fma(a[k], b[k], chains[k % 2]);
    }
    sum += chains[0] + chains[1];
  }
  return sum;
}

// The sum over a block of K.
using SumOfBlock = float (*)(const float* a, const float* b, std::int64_t depth);

// Blocks of K of one length, at most 768 and a multiple of 32.
float chain(const float* a, const float* b, std::int64_t depth, SumOfBlock of_block) {
  const std::int64_t blocks = std::max<std::int64_t>((depth + 767) / 768, 1);
  const std::int64_t length = blocks == 1 ? depth : ((depth + blocks - 1) / blocks + 31) / 32 * 32;
  float total = 0;
  for (std::int64_t first = 0; first < depth; first += length) {
    const float sum = of_block(a + first, b + first, std::min(length, depth - first));
    total = first == 0 ? sum : total + sum;
  }
  return total;
}

float documented_sum(const float* a, const float* b, std::int64_t depth, InstructionFeatures features) {
  if (features.has(InstructionFeature::amx_bf16)) return tiles_sum(a, b, depth);
  return chain(a, b, depth, features.has(InstructionFeature::neon_bf16) ? to_odd_block : fused_block);
}

TEST_P(GemmBFloat16, HasTheBitsOfTheDocumentedChain) {
  Engine engine(options(2));
  Random random(3);
  for (const std::int64_t k : {1, 2, 31, 64, 767, 768, 769, 1601, 4001}) {
    const std::int64_t m = 37, n = 107;
    Tensor<float, 2> a = random.normal_tensor<2>({m, k}), b = random.normal_tensor<2>({n, k});
    Tensor<float, 2> c({m, n}), expected({m, n});
    gemm(engine, a, packed(engine, b, Transpose::yes), c);
    round_to_bfloat16(a.view());
    round_to_bfloat16(b.view());
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) expected(i, j) = documented_sum(&a(i, 0), &b(j, 0), k, engine.features());
    }
    EXPECT_TRUE(same_bits(c.view(), expected.view())) << "K = " << k;
  }
}

// x · 1 and 1 · x are what is left of x.
TEST_P(GemmBFloat16, RoundsBothOperandsToNearestEven) {
  Engine engine(options());
  Random random(5);
  std::vector<float> values = {0.0f, 1.0f, 0x1.01p0f, 0x1.03p0f, -0x1.01p0f, 0x1.010002p0f, 0x1.00fffep0f, 0x1p-126f};
  for (const float large : {0x1.fep127f, 0x1.fefffep127f, 0x1.ffp127f, std::numeric_limits<float>::max()}) {
    values.insert(values.end(), {large, -large});
  }
  for (int repeat = 0; repeat < 5000; ++repeat) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random.next() >> 32));
    if (std::isfinite(x) && std::abs(x) >= 0x1p-126f) values.push_back(x);
  }
  const auto size = static_cast<std::int64_t>(values.size());
  const float one = 1;
  const View<const float, 2> x(values.data(), {size, 1}), unit(&one, {1, 1});
  Tensor<float, 2> of_a({size, 1}), of_b({1, size});
  gemm(engine, x, packed(engine, unit), of_a);
  gemm(engine, unit, packed(engine, x, Transpose::yes), of_b);
  for (std::int64_t i = 0; i < size; ++i) {
    EXPECT_EQ(of_a(i, 0), rounded_to_bfloat16(x(i, 0))) << x(i, 0);
    EXPECT_EQ(of_b(0, i), rounded_to_bfloat16(x(i, 0))) << x(i, 0);
  }
}

// vdpbf16ps, tdpbf16ps and bfdot take them for 0, and say so.
TEST_P(GemmBFloat16, KeepsSubnormalNumbersWhereTheInstructionDoes) {
  Engine engine(options());
  const InstructionFeatures features = engine.features();
  using enum InstructionFeature;
  const bool flushes = features.has(avx512_bf16) || features.has(amx_bf16) || features.has(neon_bf16);
  const std::array<float, 4> x = {0x1p-127f, -0x1.8p-130f, 0x1p-133f, 0x1.8p-133f};
  const float one = 1;
  Tensor<float, 2> of_a({4, 1}), of_b({1, 4});
  gemm(engine, View<const float, 2>(x.data(), {4, 1}), packed(engine, View<const float, 2>(&one, {1, 1})), of_a);
  gemm(engine, View<const float, 2>(&one, {1, 1}), packed(engine, View<const float, 2>(x.data(), {1, 4})), of_b);
  for (std::int64_t i = 0; i < 4; ++i) {
    const float expected = flushes ? 0.0f : rounded_to_bfloat16(x[static_cast<std::size_t>(i)]);
    EXPECT_EQ(of_a(i, 0), expected);
    EXPECT_EQ(of_b(0, i), expected);
  }
}

TEST_P(GemmBFloat16, NotANumberAndInfinityReachTheirRowAndColumnAlone) {
  Engine engine(options());
  Random random(6);
  // A NaN whose payload lies in the half that is cut off.
  for (const float bad :
       {std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0x7fffffffu), std::numeric_limits<float>::infinity()}) {
    Matrix a(random, 14, 9, 0), b(random, 9, 35, 0), c(random, 14, 35, 0);
    a.view()(3, 4) = bad;
    b.view()(8, 33) = bad;
    gemm(engine, a.view(), packed(engine, b.view()), c.view());
    for (std::int64_t i = 0; i < 14; ++i) {
      for (std::int64_t j = 0; j < 35; ++j) {
        EXPECT_EQ(std::isfinite(c.view()(i, j)), i != 3 && j != 33) << i << ", " << j;
        // Where the two meet, infinities of both signs may.
        if (i == 3 && j == 33) continue;
        EXPECT_EQ(std::isnan(c.view()(i, j)), std::isnan(bad) && (i == 3 || j == 33)) << i << ", " << j;
      }
    }
  }
}

TEST_P(GemmBFloat16, TakesHalfTheMemory) {
  Engine engine(options());
  const Tensor<float, 2> b({96, 192});
  const PackedMatrix whole(engine, b), half = packed(engine, b);
  EXPECT_EQ(half.type(), NumberType::bfloat16);
  EXPECT_EQ(whole.type(), NumberType::float32);
  EXPECT_EQ(2 * half.bytes(), whole.bytes());
}

}  // namespace headlight::test::gemm_bfloat16_test
