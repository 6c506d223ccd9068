// Products by AMX's tile registers, whose instructions are plain C++ here (tile_instructions.h), so that machines
// without them run the test: the documented sums to the bit, any rows alike, and nothing beyond the operands.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/kernels.h"
#include "ops/gemm/internal.h"
#include "runtime/cancellation.h"
#include "support/compare.h"
#include "support/gemm_types.h"
#include "support/guarded.h"
#include "support/random.h"

namespace headlight::amx_bf16 {
extern const kernels::GemmKernels gemm_bfloat16_kernels;
}
namespace headlight::amx_int8 {
extern const kernels::GemmKernels gemm_int8_kernels;
extern const kernels::GemmKernels gemm_int4_kernels;
}  // namespace headlight::amx_int8

namespace headlight::test::amx_test {

using kernels::GemmBlock;
using kernels::GemmKernels;

// What A is rounded and B is packed with.
bool has_vectors() {
  return available_features(Isa::avx512).has({InstructionFeature::avx512_bf16, InstructionFeature::avx512_vnni});
}

struct Case {
  std::int64_t m, n, k;
  [[nodiscard]] std::string text() const {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  }
};

// What the question between two blocks of K computes, if anything: its tiles take the place of those in use.
std::function<void()> meanwhile;
bool ask() noexcept {
  if (const std::function<void()> once = std::exchange(meanwhile, nullptr)) once();
  return false;
}

kernels::GemmEpilogue epilogue_of(float alpha, float beta, Activation activation = Activation::none) {
  kernels::GemmEpilogue epilogue{};
  epilogue.alpha = alpha;
  epilogue.beta = beta;
  epilogue.activation = activation;
  return epilogue;
}

// C [m, n] = A [m, k] · B [k, n], everything that the kernels read or write against a page that nobody may touch. Where
// that lies in front, the first panel of columns by itself and then the others, as two threads may.
Tensor<float, 2> product(const GemmKernels& kernels, NumberType type, const Tensor<float, 2>& a,
                         const Tensor<float, 2>& b, Against side,
                         const kernels::GemmEpilogue& epilogue = epilogue_of(1.0f, 0.0f)) {
  const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  kernels::Operand panels = ops::gemm_panels(kernels, type, k, n, nullptr);
  const Guarded<float> packed(panels.packed_rows(k) * panels.stride, side);
  panels.data = packed.data();
  const kernels::Operand rows{.stride = n, .data = b.data()};
  for (std::int64_t column = 0; column < n; column += kernels.panel_width) {
    kernels.pack_columns(rows, column, k, column, std::min<std::int64_t>(kernels.panel_width, n - column), panels,
                         packed.data(), &runtime::is_cancelled);
  }
  const Guarded<float> c(m * n, side), rounded(m * kernels.rounded_row(k), side);
  GemmBlock block{};
  block.rows = m;
  block.columns = n;
  block.depth = k;
  block.a = a.data();
  block.a_row_stride = k;
  block.a_depth_stride = 1;
  block.b = panels;
  block.c = c.data();
  block.c_row_stride = n;
  block.epilogue = epilogue;
  block.is_cancelled = &ask;
  std::fill_n(c.data(), m * n, 0.5f);
  kernels.round_rows(block, rounded.data());
  block.a = rounded.data();
  block.a_row_stride = kernels.rounded_row(k);
  const Guarded<float> scratch(kernels.scratch_floats(block), side);
  block.scratch = scratch.data();
  for (std::int64_t column = 0; column < n; column += block.columns) {
    block.columns = column == 0 && side == Against::front ? std::min<std::int64_t>(kernels.panel_width, n) : n - column;
    block.b_column = column;
    block.c = c.data() + column;
    if (epilogue.bias != nullptr) block.epilogue.bias = epilogue.bias + column;
    kernels.block(block);
  }
  Tensor<float, 2> found({m, n});
  std::copy_n(c.data(), m * n, found.data());
  return found;
}

template <class Function>
void for_each_case(Function f) {
  for (const std::int64_t m : {1, 15, 16, 17, 32, 33, 70}) {
    for (const Case& one :
         {Case{m, 1, 2}, Case{m, 16, 32}, Case{m, 40, 33}, Case{m, 80, 40}, Case{m, 96, 64}, Case{m, 107, 131}})
      f(one);
  }
  // Several pieces of K, and several parts of it that A's rows stay in a cache with; and more columns than go through
  // those together.
  for (const Case& one : {Case{3, 50, 769}, Case{35, 150, 1601}, Case{33, 70, 3205}, Case{40, 1075, 3072}}) f(one);
}

// headlight/gemm.h.
float sum_of_tiles(const Tensor<float, 2>& a, const Tensor<float, 2>& b, std::int64_t i, std::int64_t j) {
  const std::int64_t depth = a.shape()[1];
  float sum = 0;
  for (std::int64_t run = 0; run < depth; run += 32) {
    float chains[2] = {0, 0};
    for (std::int64_t k = run; k < std::min(depth, run + 32); ++k) {
      float& chain = chains[k % 2];
      chain = std::fma(a(i, k), b(k, j), chain);
    }
    sum += chains[0] + chains[1];
  }
  return sum;
}

TEST(Amx, ProductsOfBFloat16HaveTheDocumentedBits) {
  if (!has_vectors()) GTEST_SKIP() << "no AVX512-BF16 here";
  Random random(1);
  for_each_case([&](const Case& one) {
    Tensor<float, 2> a = random.normal_tensor<2>({one.m, one.k}), b = random.normal_tensor<2>({one.k, one.n});
    const GemmKernels& kernels = amx_bf16::gemm_bfloat16_kernels;
    const Tensor<float, 2> front = product(kernels, NumberType::bfloat16, a, b, Against::front);
    const Tensor<float, 2> back = product(kernels, NumberType::bfloat16, a, b, Against::back);
    round_to_bfloat16(a.view());
    round_to_bfloat16(b.view());
    Tensor<float, 2> expected({one.m, one.n});
    for (std::int64_t i = 0; i < one.m; ++i) {
      for (std::int64_t j = 0; j < one.n; ++j) expected(i, j) = sum_of_tiles(a, b, i, j);
    }
    EXPECT_TRUE(same_bits(front.view(), expected.view())) << one.text();
    EXPECT_TRUE(same_bits(back.view(), expected.view())) << one.text();
    // Halves and ones are exact: there is one rounding, however it is computed.
    for (float& x : expected) x = 0.5f * x + 1.0f;
    const std::vector<float> bias(static_cast<std::size_t>(one.n), 0.5f);
    kernels::GemmEpilogue half = epilogue_of(0.5f, 1.0f);
    half.bias = bias.data();
    EXPECT_TRUE(same_bits(product(kernels, NumberType::bfloat16, a, b, Against::front, half).view(), expected.view()));
  });
}

void expect_bits_of_vectors(const GemmKernels& tiles, const GemmKernels& vectors, NumberType type) {
  Random random(2);
  const auto expect = [&](const Case& one) {
    const Tensor<float, 2> a = random.normal_tensor<2>({one.m, one.k}), b = random.normal_tensor<2>({one.k, one.n});
    for (const Against side : kBothSides) {
      for (const auto& epilogue : {epilogue_of(1.0f, 0.0f), epilogue_of(0.7f, -2.0f, Activation::gelu)}) {
        const Tensor<float, 2> found = product(tiles, type, a, b, side, epilogue);
        const Tensor<float, 2> expected = product(vectors, type, a, b, side, epilogue);
        EXPECT_TRUE(same_bits(found.view(), expected.view())) << one.text();
      }
    }
  };
  for_each_case(expect);
  expect({33, 33, 17001});  // two blocks of K
}

TEST(Amx, ProductsOfInt8HaveTheBitsOfVectors) {
  if (!has_vectors()) GTEST_SKIP() << "no AVX512-VNNI here";
  expect_bits_of_vectors(amx_int8::gemm_int8_kernels,
                         kernels::gemm_int8_kernels(Isa::avx512, {InstructionFeature::avx512_vnni}), NumberType::int8);
}

TEST(Amx, ProductsOfInt4HaveTheBitsOfVectors) {
  if (!has_vectors()) GTEST_SKIP() << "no AVX512-VNNI here";
  expect_bits_of_vectors(amx_int8::gemm_int4_kernels,
                         kernels::gemm_int4_kernels(Isa::avx512, {InstructionFeature::avx512_vnni}), NumberType::int4);
}

// Python's handlers of signals run there.
TEST(Amx, AQuestionBetweenBlocksOfKMayMultiply) {
  if (!has_vectors()) GTEST_SKIP() << "no AVX512-BF16 here";
  Random random(3);
  const Tensor<float, 2> a = random.normal_tensor<2>({35, 3201}), b = random.normal_tensor<2>({3201, 50});
  const Tensor<float, 2> short_a = random.normal_tensor<2>({7, 40}), short_b = random.normal_tensor<2>({40, 20});
  const GemmKernels& kernels = amx_bf16::gemm_bfloat16_kernels;
  const Tensor<float, 2> expected = product(kernels, NumberType::bfloat16, a, b, Against::back);
  bool was_asked = false;
  meanwhile = [&] {
    was_asked = true;
    product(kernels, NumberType::bfloat16, short_a, short_b, Against::back);
  };
  EXPECT_TRUE(same_bits(product(kernels, NumberType::bfloat16, a, b, Against::back).view(), expected.view()));
  EXPECT_TRUE(was_asked);
}

}  // namespace headlight::test::amx_test
