// What products promise whatever the type of a packed B is: the same bits however they are cut, and nothing beyond
// their operands and the memory that was reserved.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/gemm.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/guarded.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/random.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test::gemm_types_test {

constexpr NumberType kTypes[] = {NumberType::bfloat16, NumberType::float16, NumberType::int8, NumberType::int4};
// Those that round A, and so take one of bfloat16.
bool takes_narrow_a(NumberType type) { return type != NumberType::float32 && type != NumberType::float16; }

using GemmTypes = EachIsaAndFeature;
HEADLIGHT_ON_EVERY_FEATURE(GemmTypes);

Tensor<float, 2> transposed(const Tensor<float, 2>& matrix) {
  Tensor<float, 2> turned({matrix.shape()[1], matrix.shape()[0]});
  for (std::int64_t i = 0; i < matrix.shape()[0]; ++i) {
    for (std::int64_t j = 0; j < matrix.shape()[1]; ++j) turned(j, i) = matrix(i, j);
  }
  return turned;
}

TEST_P(GemmTypes, HaveTheSameBitsForEveryThreadCountAndLayout) {
  Random random(4);
  const std::int64_t shapes[][3] = {{130, 300, 200}, {1, 900, 1600}, {3, 700, 33}, {1000, 40, 20}, {17, 500, 767}};
  for (const NumberType type : kTypes) {
    for (const auto& [m, n, k] : shapes) {
      SCOPED_TRACE(std::string(name(type)) + " " + std::to_string(m) + "x" + std::to_string(n) + "x" +
                   std::to_string(k));
      const Tensor<float, 2> a = random.uniform_tensor<2>({m, k}), b = random.uniform_tensor<2>({k, n});
      const Tensor<float, 2> a_transposed = transposed(a), b_transposed = transposed(b);
      Tensor<float, 2> expected({m, n}), c({m, n});
      Engine one(options());
      const PackedMatrix packed(one, b, Transpose::no, type);
      const GemmOptions asked{.alpha = 0.75f, .activation = Activation::gelu};
      gemm(one, a, packed, expected, asked);
      for (const int threads : count(std::vector{1, 2, 3, 5, 8}, std::vector{3})) {
        Engine engine(options(threads));
        GemmOptions turned = asked;
        gemm(engine, a, PackedMatrix(engine, b_transposed, Transpose::yes, type), c, turned);
        EXPECT_TRUE(same_bits(c.view(), expected.view())) << threads << " threads, transposed b";
        turned.transpose_a = Transpose::yes;
        gemm(engine, a_transposed, packed, c, turned);
        EXPECT_TRUE(same_bits(c.view(), expected.view())) << threads << " threads, transposed a";
      }
      // One row alone is that row of all.
      const std::int64_t row = m / 2;
      Tensor<float, 2> alone({1, n});
      gemm(one, View<const float, 2>(&a(row, 0), {1, k}), packed, alone, asked);
      EXPECT_TRUE(same_bits(alone.view(), View<float, 2>(&expected(row, 0), {1, n})));
    }
  }
}

// A row has its bits alone and among any number of others, with pairs of rows and without, with words of K that are
// whole and that are not.
TEST_P(GemmTypes, HaveTheBitsOfOneRowInTilesOfEveryHeight) {
  Engine engine(options());
  Random random(9);
  const std::int64_t most = 27, n = 35;
  for (const NumberType type : kTypes) {
    for (const std::int64_t k : {1, 2, 3, 4, 5, 7, 8, 9, 33, 70}) {
      SCOPED_TRACE(std::string(name(type)) + ", K = " + std::to_string(k));
      const Tensor<float, 2> a = random.normal_tensor<2>({most, k}), b = random.normal_tensor<2>({k, n});
      const PackedMatrix packed(engine, b, Transpose::no, type);
      Tensor<float, 2> alone({most, n}), together({most, n});
      for (std::int64_t i = 0; i < most; ++i) {
        gemm(engine, View<const float, 2>(&a(i, 0), {1, k}), packed, View<float, 2>(&alone(i, 0), {1, n}));
      }
      for (std::int64_t m = 2; m <= most; ++m) {
        const View<float, 2> of_m(together.data(), {m, n});
        gemm(engine, View<const float, 2>(a.data(), {m, k}), packed, of_m);
        EXPECT_TRUE(same_bits(of_m, View<const float, 2>(alone.data(), {m, n}))) << m << " rows";
      }
    }
  }
}

// Each row of products of many rows, in several blocks of rows and of K, has the bits that it has alone, on any number
// of threads, and whether A is float32 or bfloat16, as it lies or turned over.
TEST_P(GemmTypes, HaveTheBitsOfOneRowOnEveryRoute) {
  Random random(10);
  const std::int64_t shapes[][3] = {{70, 110, 64}, {33, 100, 801}, {300, 130, 1601}, {600, 60, 96}};
  for (const NumberType type : kTypes) {
    for (const auto& [m, n, whole_k] : shapes) {
      const std::int64_t k = count(whole_k, std::min<std::int64_t>(whole_k, 801));
      SCOPED_TRACE(std::string(name(type)) + " " + std::to_string(m) + "x" + std::to_string(n) + "x" +
                   std::to_string(k));
      const Tensor<float, 2> b = random.normal_tensor<2>({k, n});
      Tensor<float, 2> a({m, k});
      Tensor<BFloat16, 2> narrow_a({m, k});
      for (std::int64_t i = 0; i < a.size(); ++i) {
        narrow_a.data()[i] = BFloat16(random.normal());
        a.data()[i] = static_cast<float>(narrow_a.data()[i]);
      }
      const Tensor<float, 2> a_transposed = transposed(a);
      Engine one(options());
      const PackedMatrix packed(one, b, Transpose::no, type);
      Tensor<float, 2> alone({m, n}), c({m, n});
      for (std::int64_t i = 0; i < m; ++i) {
        gemm(one, View<const float, 2>(&a(i, 0), {1, k}), packed, View<float, 2>(&alone(i, 0), {1, n}));
      }
      for (const int threads : {1, 3}) {
        Engine engine(options(threads));
        gemm(engine, a, packed, c);
        EXPECT_TRUE(same_bits(c.view(), alone.view())) << threads << " threads";
        gemm(engine, a_transposed, packed, c, {.transpose_a = Transpose::yes});
        EXPECT_TRUE(same_bits(c.view(), alone.view())) << threads << " threads, transposed a";
        if (!takes_narrow_a(type)) continue;
        gemm(engine, narrow_a, packed, c);
        EXPECT_TRUE(same_bits(c.view(), alone.view())) << threads << " threads, a of bfloat16";
      }
    }
  }
}

// A PackedMatrix is that of its instruction set, whatever features the engine has that made it, and but for features
// that add in an order of their own the product has the bits of the set.
TEST_P(GemmTypes, ShareAMatrixBetweenEnginesWithAndWithoutFeatures) {
  Random random(5);
  const Tensor<float, 2> a = random.uniform_tensor<2>({20, 131}), b = random.uniform_tensor<2>({131, 99});
  EngineOptions plain = options();
  plain.features = InstructionFeatures{};
  Engine engine(options()), without(plain);
  for (const NumberType type : kTypes) {
    Tensor<float, 2> expected({20, 99}), c({20, 99});
    const PackedMatrix of_engine(engine, b, Transpose::no, type), of_other(without, b, Transpose::no, type);
    gemm(without, a, of_other, expected);
    gemm(without, a, of_engine, c);
    EXPECT_TRUE(same_bits(c.view(), expected.view())) << name(type);
    gemm(engine, a, of_other, c);
    EXPECT_EQ(same_bits(c.view(), expected.view()), has_bits_of_set(GetParam(), type)) << name(type);
    gemm(engine, a, of_engine, expected);
    EXPECT_TRUE(same_bits(c.view(), expected.view())) << name(type);
  }
}

TEST_P(GemmTypes, TouchNothingOutsideTheirOperands) {
  Engine engine(options());
  Random random(7);
  for (int repeat = 0; repeat < count(160, 40); ++repeat) {
    const NumberType type = kTypes[static_cast<std::size_t>(repeat) % std::size(kTypes)];
    const std::int64_t m = random.integer(1, 40), n = random.integer(1, 140);
    const std::int64_t k = repeat % 10 == 0 ? random.integer(700, 1600) : random.integer(1, 70);
    const bool ta = random.once_in(2), tb = random.once_in(2);
    for (const Against side : kBothSides) {
      const Guarded<float> a(m * k, side), b(k * n, side), c(m * n, side);
      for (std::int64_t i = 0; i < m * k; ++i) a.data()[i] = random.uniform();
      for (std::int64_t i = 0; i < k * n; ++i) b.data()[i] = random.uniform();
      const PackedMatrix packed(engine, b.view<2>({tb ? n : k, tb ? k : n}), tb ? Transpose::yes : Transpose::no, type);
      gemm(engine, a.view<2>({ta ? k : m, ta ? m : k}), packed, c.view<2>({m, n}),
           {.transpose_a = ta ? Transpose::yes : Transpose::no});
    }
  }
}

TEST_P(GemmTypes, AllocateNothingAfterReserve) {
  Random random(8);
  for (const NumberType type : kTypes) {
    for (const int threads : {1, 3}) {
      for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{200, 300, 1700},
                                    {1, 900, 1600},
                                    {400, 70, 201},
                                    {2500, 40, 60},
                                    {5, 5, 5},
                                    {30, 700, 1601}}) {
        const Tensor<float, 2> a = random.uniform_tensor<2>({m, k}), b = random.uniform_tensor<2>({n, k});
        const Tensor<float, 2> a_transposed = transposed(a);
        const Tensor<BFloat16, 2> narrow_a({m, k});
        Tensor<float, 2> c({m, n});
        Tensor<BFloat16, 2> narrow_c({m, n});
        Engine engine(options(threads));
        wait_for_workers(engine);
        const PackedMatrix matrix(engine, b, Transpose::yes, type);
        engine.release_scratch();
        reserve(engine, {.m = m, .n = n, .k = k, .packed = true, .type = type});
        const AllocationCounter counter;
        gemm(engine, a, matrix, c);
        gemm(engine, a_transposed, matrix, c, {.transpose_a = Transpose::yes});
        gemm(engine, a, matrix, narrow_c);
        if (takes_narrow_a(type)) gemm(engine, narrow_a, matrix, narrow_c);
        const std::int64_t allocations = counter.count();
        EXPECT_EQ(allocations, 0) << name(type) << " " << m << "x" << n << "x" << k << " on " << threads;
      }
    }
  }
}

TEST_P(GemmTypes, MayHaveNoRowsOrNoDepth) {
  Engine engine(options());
  for (const NumberType type : kTypes) {
    float c[4] = {1, 2, 3, 4};
    const View<const float, 2> nothing(nullptr, {0, 2});
    const PackedMatrix of_nothing(engine, nothing, Transpose::no, type);
    gemm(engine, View<const float, 2>(nullptr, {2, 0}), of_nothing, View<float, 2>(c, {2, 2}), {.beta = 2});
    EXPECT_EQ(std::vector<float>(c, c + 4), (std::vector<float>{2, 4, 6, 8})) << name(type);
    gemm(engine, View<const float, 2>(nullptr, {2, 0}), of_nothing, View<float, 2>(c, {2, 2}));
    EXPECT_TRUE(std::ranges::all_of(c, [](float x) { return x == 0; })) << name(type);
    const PackedMatrix some(engine, View<const float, 2>(c, {2, 2}), Transpose::no, type);
    gemm(engine, nothing, some, View<float, 2>(nullptr, {0, 2}));
    const PackedMatrix no_columns(engine, View<const float, 2>(nullptr, {2, 0}), Transpose::no, type);
    gemm(engine, View<const float, 2>(c, {2, 2}), no_columns, View<float, 2>(nullptr, {2, 0}));
  }
}

TEST(GemmTypesArguments, AreNamedWhenTheyAreBad) {
  Engine engine(EngineOptions{.threads = 1});
  const Tensor<float, 2> b({2, 2});
  EXPECT_EQ(refusal([&] { PackedMatrix(engine, b, Transpose::no, static_cast<NumberType>(9)); }),
            "PackedMatrix: type is 9, expected float32, bfloat16, float16, int8 or int4");
  for (const NumberType type : kTypes) {
    EXPECT_EQ(refusal([&] { reserve(engine, {.m = 2, .n = 2, .k = 2, .type = type}); }),
              "gemm: shape [1, 2, 2, 2] ([batch, M, N, K]) has a B of " + std::string(name(type)) +
                  " that is not packed, expected float32");
  }
}

}  // namespace headlight::test::gemm_types_test
