// A block of C needs no more scratch than its kernels say: panels of B that are packed or widened, sums, and rows of A
// lie between pages that nobody may touch.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/gemm.h"
#include "ops/gemm/internal.h"
#include "support/compare.h"
#include "support/guarded.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/random.h"

namespace headlight::test::gemm_scratch_test {

using GemmScratch = EachIsa;
HEADLIGHT_ON_EVERY_ISA(GemmScratch);

struct Shape {
  std::int64_t m, n, k;
};

// Columns around one vector and one panel of every instruction set, and K of one block and of several.
template <class Check>
void for_shapes(const Check& check) {
  for (const std::int64_t m : {1, 7, 61}) {
    for (const std::int64_t n : count(std::vector{1, 15, 17, 31, 33, 40, 47, 49, 65, 99}, std::vector{1, 33, 65})) {
      for (const std::int64_t k : {1, 33, 801}) {
        SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
        check(Shape{m, n, k});
      }
    }
  }
}

void expect_enough(const kernels::GemmKernels& kernels, kernels::GemmBlock block, const Tensor<float, 2>& c,
                   const Tensor<float, 2>& expected) {
  for (const Against side : kBothSides) {
    const Guarded<float> scratch(kernels.scratch_floats(block), side);
    block.scratch = scratch.data();
    kernels.block(block);
    EXPECT_TRUE(same_bits(c, expected));
  }
}

TEST_P(GemmScratch, OfFloatsIsEnoughHoweverTheyLie) {
  Engine engine(options());
  Random random(1);
  for_shapes([&](const Shape& shape) {
    for (const auto transpose_a : {Transpose::no, Transpose::yes}) {
      for (const auto transpose_b : {Transpose::no, Transpose::yes}) {
        const bool turns_a = transpose_a == Transpose::yes, turns_b = transpose_b == Transpose::yes;
        const auto a = random.normal_tensor<2>({turns_a ? shape.k : shape.m, turns_a ? shape.m : shape.k});
        const auto b = random.normal_tensor<2>({turns_b ? shape.n : shape.k, turns_b ? shape.k : shape.n});
        Tensor<float, 2> c({shape.m, shape.n}), expected({shape.m, shape.n});
        gemm(engine, a, b, expected, {.transpose_a = transpose_a, .transpose_b = transpose_b});
        expect_enough(ops::gemm_kernels(engine, NumberType::float32),
                      ops::gemm_block(a.view(), b, c.view(), transpose_a, transpose_b), c, expected);
      }
    }
  });
}

TEST_P(GemmScratch, OfWidenedPanelsIsEnough) {
  Engine engine(options());
  Random random(2);
  for_shapes([&](const Shape& shape) {
    const auto a = random.normal_tensor<2>({shape.m, shape.k}), b = random.normal_tensor<2>({shape.k, shape.n});
    const PackedMatrix packed(engine, b, Transpose::no, NumberType::float16);
    Tensor<float, 2> c({shape.m, shape.n}), expected({shape.m, shape.n});
    gemm(engine, a, packed, expected);
    const kernels::GemmKernels& kernels = ops::gemm_kernels(engine, NumberType::float16);
    kernels::GemmBlock block = ops::gemm_block(a.view(), {}, c.view());
    block.b = ops::gemm_panels(kernels, NumberType::float16, shape.k, shape.n, packed.data());
    expect_enough(kernels, block, c, expected);
  });
}

}  // namespace headlight::test::gemm_scratch_test
