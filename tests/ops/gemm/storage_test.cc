// Products whose A or C is stored as bfloat16: the bits of the same product over float32, which tests beside this one
// hold to its twin, rounded once.
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
#include "support/gemm_types.h"
#include "support/guarded.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/random.h"
#include "support/refusal.h"
#include "support/stored_matrix.h"

namespace headlight::test::gemm_storage_test {

constexpr NumberType kTypes[] = {NumberType::float32, NumberType::bfloat16, NumberType::float16, NumberType::int8,
                                 NumberType::int4};
// Those that round A, and so take one of bfloat16.
bool takes_narrow_a(NumberType type) { return type != NumberType::float32 && type != NumberType::float16; }

using GemmStorage = EachIsaAndFeature;
HEADLIGHT_ON_EVERY_FEATURE(GemmStorage);

// All that may be stored as bfloat16 beside a B of that type, at addresses and distances odd and even.
void check(Engine& engine, Random& random, const GemmCase& made, NumberType type) {
  SCOPED_TRACE(std::string(name(type)) + " " + made.text());
  GemmOperands operands(random, made);
  round_to_bfloat16(operands.a.view());
  round_to_bfloat16(operands.c.view());
  const PackedMatrix packed(engine, operands.b.view(), made.transpose_b, type);
  Matrix expected = operands.c, c = operands.c;
  gemm(engine, operands.a.view(), packed, expected.view(), operands.options);

  StoredMatrix narrow_c(operands.c.view(), random.integer(0, 1));
  gemm(engine, operands.a.view(), packed, narrow_c.view(), operands.options);
  EXPECT_TRUE(narrow_c.holds(expected.view())) << "c";
  if (!takes_narrow_a(type)) return;
  StoredMatrix narrow_a(operands.a.view(), random.integer(0, 1));
  gemm(engine, narrow_a.view(), packed, c.view(), operands.options);
  EXPECT_TRUE(same_bits(c.view(), expected.view())) << "a";
  StoredMatrix both(operands.c.view(), random.integer(0, 1));
  gemm(engine, narrow_a.view(), packed, both.view(), operands.options);
  EXPECT_TRUE(both.holds(expected.view())) << "a and c";
}

TEST_P(GemmStorage, HasTheBitsOfFloat32OnRaggedSizes) {
  Engine engine(options());
  for (const NumberType type : kTypes) {
    for_ragged_cases([&](Random& random, const GemmCase& made) { check(engine, random, made, type); });
  }
}

TEST_P(GemmStorage, HasTheBitsOfFloat32ForEveryTile) {
  Engine engine(options());
  for (const NumberType type : kTypes) {
    for_cases_of_every_tile([&](Random& random, const GemmCase& made) { check(engine, random, made, type); });
  }
}

TEST_P(GemmStorage, HasTheBitsOfFloat32ForEveryThreadCount) {
  Random random(4);
  const std::int64_t shapes[][3] = {{130, 300, 200}, {1, 900, 1600}, {3, 700, 33},  {1000, 40, 20},
                                    {17, 500, 767},  {60, 96, 1536}, {9, 48, 1570}, {450, 33, 1601}};
  for (const auto& [m, n, k] : shapes) {
    GemmCase made;
    made.m = m, made.n = n, made.k = k, made.alpha = 0.75f, made.bias = true, made.activation = Activation::gelu;
    for (const int threads : count(std::vector{1, 2, 3, 5, 8}, std::vector{3})) {
      Engine engine(options(threads));
      for (const NumberType type : kTypes) check(engine, random, made, type);
    }
  }
}

// A bias by itself, beside zeros of each type.
TEST_P(GemmStorage, RoundsToNearestEven) {
  Engine engine(options());
  Random random(5);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0x1.01p0f,     0x1.03p0f,       -0x1.01p0f,       0x1.010002p0f,
                               0x1.00fffep0f, 0x1p-133f,       0x1.8p-133f,      -0x1.8p-130f,
                               0x1p-134f,     0x1p-149f,       0x1.fffffep-127f, kInfinity,
                               -kInfinity,    0x1.fefffep127f, 0x1.ffp127f,      std::numeric_limits<float>::max()};
  for (int repeat = 0; repeat < 5000; ++repeat) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random.next() >> 32)));
  }
  const auto size = static_cast<std::int64_t>(values.size());
  const Tensor<float, 2> a({1, 2}), b({2, size});
  for (const NumberType type : kTypes) {
    Tensor<BFloat16, 2> c({1, size});
    gemm(engine, a, PackedMatrix(engine, b, Transpose::no, type), c, {.bias = values});
    for (std::int64_t i = 0; i < size; ++i) {
      const float x = values[static_cast<std::size_t>(i)];
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(static_cast<float>(c(0, i)))) << name(type);
      } else {
        EXPECT_EQ(c(0, i).bits, BFloat16(x).bits) << name(type) << " " << x;
      }
    }
  }
}

TEST_P(GemmStorage, TouchesNothingOutsideItsOperands) {
  Engine engine(options());
  Random random(7);
  for (int repeat = 0; repeat < count(160, 40); ++repeat) {
    constexpr NumberType kOfNarrowA[] = {NumberType::bfloat16, NumberType::int8, NumberType::int4};
    const NumberType type = kOfNarrowA[repeat % 3];
    const std::int64_t m = random.integer(1, 30), n = random.integer(1, 140);
    const std::int64_t k = repeat % 10 == 0 ? random.integer(700, 1600) : random.integer(1, 70);
    const Transpose turned = random.once_in(2) ? Transpose::yes : Transpose::no;
    const Tensor<float, 2> b = random.uniform_tensor<2>({k, n});
    const PackedMatrix packed(engine, b, Transpose::no, type);
    for (const Against side : kBothSides) {
      const Guarded<BFloat16> a(m * k, side), c(m * n, side);
      for (std::int64_t i = 0; i < m * k; ++i) a.data()[i] = BFloat16(random.uniform());
      const bool is_turned = turned == Transpose::yes;
      gemm(engine, a.view<2>({is_turned ? k : m, is_turned ? m : k}), packed, c.view<2>({m, n}),
           {.transpose_a = turned});
    }
  }
}

TEST(GemmStorageArguments, AreNamedWhenTheyAreBad) {
  Engine engine(EngineOptions{.threads = 1});
  std::array<float, 8> memory{};
  const Tensor<float, 2> b({2, 2});
  const PackedMatrix packed(engine, b, Transpose::no, NumberType::bfloat16), wide(engine, b);
  Tensor<float, 2> floats({2, 2});
  Tensor<BFloat16, 2> narrow({2, 2});
  Tensor<Float16, 2> half({2, 2});
  EXPECT_EQ(refusal([&] { gemm(engine, half, packed, floats); }),
            "gemm: a has type float16, expected float32 or bfloat16");
  EXPECT_EQ(refusal([&] { gemm(engine, floats, packed, half); }),
            "gemm: c has type float16, expected float32 or bfloat16");
  EXPECT_EQ(refusal([&] { gemm(engine, narrow, wide, floats); }),
            "gemm: a has type bfloat16 and b float32, expected an a of float32 or a b of bfloat16, int8 or int4");
  EXPECT_EQ(refusal([&] { gemm(engine, narrow, PackedMatrix(engine, b, Transpose::no, NumberType::float16), floats); }),
            "gemm: a has type bfloat16 and b float16, expected an a of float32 or a b of bfloat16, int8 or int4");
  const MutableTypedView<2> odd(NumberType::bfloat16, reinterpret_cast<std::byte*>(memory.data()) + 1, {2, 2});
  EXPECT_EQ(refusal([&] { gemm(engine, floats, packed, odd); }),
            "gemm: c lies at an address that is no multiple of a number's 2 bytes");
  const MutableTypedView<2> over(NumberType::bfloat16, memory.data(), {2, 2});
  const View<const float, 2> residual(memory.data(), {2, 2});
  EXPECT_NE(refusal([&] { gemm(engine, floats, packed, over, {.residual = residual}); }).find("residual"),
            std::string::npos);
}

}  // namespace headlight::test::gemm_storage_test
