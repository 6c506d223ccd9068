// Products in bfloat16 whose B is packed for one call: the bits of the same product with a PackedMatrix, which tests
// beside this one hold to its twin.
#include <bit>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/gemm.h"
#include "ops/gemm/internal.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/gemm_case.h"
#include "support/gemm_types.h"
#include "support/guarded.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/random.h"
#include "support/stored_matrix.h"

namespace headlight::test::gemm_changing_test {

using GemmChanging = EachIsaAndFeature;
HEADLIGHT_ON_EVERY_FEATURE(GemmChanging);

// Operands and result of float32, and of bfloat16 at addresses and distances odd and even. Panels round B likewise.
void check(Engine& engine, Random& random, const GemmCase& made) {
  SCOPED_TRACE(made.text());
  GemmOperands operands(random, made);
  round_to_bfloat16(operands.c.view());
  const PackedMatrix packed(engine, operands.b.view(), made.transpose_b, NumberType::bfloat16);
  Matrix expected = operands.c, c = operands.c;
  gemm(engine, operands.a.view(), packed, expected.view(), operands.options);
  ops::gemm_bfloat16(engine, operands.a.view(), operands.b.view(), c.view(), operands.options);
  EXPECT_TRUE(same_bits(c.view(), expected.view()));
  EXPECT_TRUE(gaps_are_untouched(c));

  StoredMatrix narrow_a(operands.a.view(), random.integer(0, 1)), narrow_c(operands.c.view(), random.integer(0, 1));
  ops::gemm_bfloat16(engine, narrow_a.view(), operands.b.view(), narrow_c.view(), operands.options);
  round_to_bfloat16(operands.a.view());
  Matrix of_rounded = operands.c;
  gemm(engine, operands.a.view(), packed, of_rounded.view(), operands.options);
  EXPECT_TRUE(narrow_c.holds(of_rounded.view())) << "a and c";
  if (made.transpose_b == Transpose::yes) return;
  StoredMatrix narrow_b(operands.b.view(), random.integer(0, 1));
  c = operands.c;
  ops::gemm_bfloat16(engine, narrow_a.view(), narrow_b.view(), c.view(), operands.options);
  EXPECT_TRUE(same_bits(c.view(), of_rounded.view())) << "a and b";
}

TEST_P(GemmChanging, HasTheBitsOfAPackedMatrixOnRaggedSizes) {
  Engine engine(options());
  for_ragged_cases([&](Random& random, const GemmCase& made) { check(engine, random, made); });
}

TEST_P(GemmChanging, HasTheBitsOfAPackedMatrixForEveryTile) {
  Engine engine(options());
  for_cases_of_every_tile([&](Random& random, const GemmCase& made) { check(engine, random, made); });
}

TEST_P(GemmChanging, HasTheSameBitsOnEveryNumberOfThreads) {
  Random random(4);
  const std::int64_t shapes[][3] = {{130, 300, 200}, {1, 900, 1600}, {1000, 40, 20}, {60, 96, 1536}, {450, 33, 1601}};
  for (const auto& [m, n, k] : shapes) {
    for (const Transpose transpose : {Transpose::no, Transpose::yes}) {
      GemmCase made;
      made.m = m, made.n = n, made.k = k, made.transpose_a = transpose, made.beta = 1;
      for (const int threads : count(std::vector{1, 2, 3, 5}, std::vector{3})) {
        Engine engine(options(threads));
        check(engine, random, made);
      }
    }
  }
}

// All bits of floats, subnormal numbers, infinities and NaN among them.
TEST_P(GemmChanging, RoundsAsPanelsDo) {
  Engine engine(options());
  Random random(6);
  Tensor<float, 2> a({33, 70}), b({70, 50}), expected({33, 50}), c({33, 50});
  for (Tensor<float, 2>* matrix : {&a, &b}) {
    for (float& number : *matrix) {
      if (random.once_in(8)) number = std::bit_cast<float>(static_cast<std::uint32_t>(random.next() >> 32));
    }
  }
  gemm(engine, a, PackedMatrix(engine, b, Transpose::no, NumberType::bfloat16), expected);
  ops::gemm_bfloat16(engine, a, b, c, {});
  EXPECT_TRUE(same_bits(c, expected));
  StoredMatrix narrow(b.view(), 0);
  ops::gemm_bfloat16(engine, a, narrow.view(), c, {});
  EXPECT_TRUE(same_bits(c, expected));
}

TEST_P(GemmChanging, TouchesNothingOutsideItsOperands) {
  Engine engine(options());
  Random random(7);
  for (int repeat = 0; repeat < count(80, 20); ++repeat) {
    const std::int64_t m = random.integer(1, 30), n = random.integer(1, 140);
    const std::int64_t k = repeat % 10 == 0 ? random.integer(700, 1600) : random.integer(1, 70);
    for (const Against side : kBothSides) {
      const Guarded<float> a(m * k, side), floats(k * n, side), c(m * n, side);
      const Guarded<BFloat16> narrow(k * n, side);
      const GemmOptions turned = {.transpose_a = Transpose::yes, .beta = 1};
      ops::gemm_bfloat16(engine, a.view<2>({k, m}), narrow.view<2>({k, n}), c.view<2>({m, n}), turned);
      ops::gemm_bfloat16(engine, a.view<2>({k, m}), floats.view<2>({k, n}), c.view<2>({m, n}), turned);
      ops::gemm_bfloat16(engine, a.view<2>({m, k}), floats.view<2>({n, k}), c.view<2>({m, n}),
                         {.transpose_b = Transpose::yes});
    }
  }
}

TEST_P(GemmChanging, ASecondCallAllocatesNothing) {
  Engine engine(options(2));
  Random random(5);
  const auto a = random.normal_tensor<2>({150, 90}), b = random.normal_tensor<2>({150, 70});
  Tensor<float, 2> c({90, 70});
  const GemmOptions asked = {.transpose_a = Transpose::yes, .beta = 1};
  ops::gemm_bfloat16(engine, a, b, c, asked);
  const AllocationCounter counter;
  ops::gemm_bfloat16(engine, a, b, c, asked);
  EXPECT_EQ(counter.count(), 0);
}

}  // namespace headlight::test::gemm_changing_test
