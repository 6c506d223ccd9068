// What a matrix product promises beside its value: the same bits however it is asked for, no byte outside its operands,
// no allocation once it has run, and a clear word for every bad argument.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/gemm.h"
#include "ops/gemm/internal.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/gemm_case.h"
#include "support/guarded.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test::gemm_promises_test {

using GemmPromises = EachIsa;
HEADLIGHT_ON_EVERY_ISA(GemmPromises);

Tensor<float, 2> transposed(const Tensor<float, 2>& from) {
  Tensor<float, 2> to({from.shape()[1], from.shape()[0]});
  for (std::int64_t i = 0; i < from.shape()[0]; ++i) {
    for (std::int64_t j = 0; j < from.shape()[1]; ++j) to(j, i) = from(i, j);
  }
  return to;
}

TEST_P(GemmPromises, SameBitsForEveryThreadCountAndLayout) {
  Random random(1);
  const std::int64_t shapes[][3] = {{130, 300, 200}, {1, 900, 1600}, {3, 700, 33}, {40, 64, 2000}, {1000, 40, 20}};
  for (const auto& [m, n, whole_k] : shapes) {
    const std::int64_t k = count(whole_k, std::min<std::int64_t>(whole_k, 800));
    SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
    const Tensor<float, 2> a = random.uniform_tensor<2>({m, k});
    const Tensor<float, 2> b = random.uniform_tensor<2>({k, n});
    const Tensor<float, 2> a_transposed = transposed(a);
    const Tensor<float, 2> b_transposed = transposed(b);
    const Tensor<float, 1> bias = random.uniform_tensor<1>({n});
    GemmOptions options_of_all{.alpha = 0.75f, .activation = Activation::gelu};
    options_of_all.bias = {bias.data(), static_cast<std::size_t>(n)};
    Tensor<float, 2> expected({m, n});
    Engine one(options(1));
    gemm(one, a, b, expected, options_of_all);
    for (const int threads : count(std::vector{1, 2, 3, 5, 8}, std::vector{3})) {
      Engine engine(options(threads));
      const PackedMatrix packed(engine, b);
      const PackedMatrix packed_transposed(engine, b_transposed, Transpose::yes);
      for (const Transpose transpose_a : {Transpose::no, Transpose::yes}) {
        GemmOptions asked = options_of_all;
        asked.transpose_a = transpose_a;
        const View<const float, 2> left = transpose_a == Transpose::yes ? a_transposed.view() : a.view();
        Tensor<float, 2> c({m, n});
        gemm(engine, left, b, c, asked);
        EXPECT_TRUE(same_bits(c.view(), expected.view())) << threads << " threads, b in place";
        gemm(engine, left, packed, c, asked);
        EXPECT_TRUE(same_bits(c.view(), expected.view())) << threads << " threads, b packed";
        gemm(engine, left, packed_transposed, c, asked);
        EXPECT_TRUE(same_bits(c.view(), expected.view())) << threads << " threads, transposed b packed";
        asked.transpose_b = Transpose::yes;
        gemm(engine, left, b_transposed, c, asked);
        EXPECT_TRUE(same_bits(c.view(), expected.view())) << threads << " threads, transposed b";
      }
    }
  }
}

// Any rows and columns of a product are the product of those rows and columns.
TEST_P(GemmPromises, SameBitsForAnyPartOfTheProduct) {
  Engine engine(options());
  Random random(2);
  const std::int64_t m = 60, n = 150, k = 1700;
  const Tensor<float, 2> a = random.uniform_tensor<2>({m, k});
  const Tensor<float, 2> b = random.uniform_tensor<2>({k, n});
  Tensor<float, 2> all({m, n});
  gemm(engine, a, PackedMatrix(engine, b), all);
  for (int repeat = 0; repeat < count(60, 10); ++repeat) {
    const std::int64_t rows = repeat % 2 == 0 ? 1 : random.integer(1, m);
    const std::int64_t row = random.integer(0, m - rows);
    const std::int64_t columns = random.integer(1, n);
    const std::int64_t column = random.integer(0, n - columns);
    const View<const float, 2> left(a.data() + row * k, {rows, k});
    const View<const float, 2> right(b.data() + column, {k, columns}, {n, 1});
    const View<const float, 2> expected(all.data() + row * n + column, {rows, columns}, {n, 1});
    Tensor<float, 2> c({rows, columns});
    gemm(engine, left, right, c);
    EXPECT_TRUE(same_bits(c.view(), expected));
    gemm(engine, left, PackedMatrix(engine, right), c);
    EXPECT_TRUE(same_bits(c.view(), expected));
    std::vector<float> scratch(static_cast<std::size_t>(ops::gemm_scratch_floats(engine.isa(), rows, columns, k)) + 32);
    auto* aligned = reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 127) / 128 * 128);
    ops::run_gemm_block(engine.isa(), ops::gemm_block(left, right, c), aligned);
    EXPECT_TRUE(same_bits(c.view(), expected));
  }
}

// A column of a product, which is computed as a row where it lies side by side, and as a column where it does not.
TEST_P(GemmPromises, SameBitsForOneColumn) {
  Random random(7);
  for (const auto& [m, k] : {std::pair<std::int64_t, std::int64_t>{2, 5}, {37, 64}, {300, 1700}, {5, 1}}) {
    const Tensor<float, 2> a = random.uniform_tensor<2>({m, k}), b = random.uniform_tensor<2>({k, 3});
    const Tensor<float, 2> before = random.uniform_tensor<2>({m, 3}), added = random.uniform_tensor<2>({m, 3});
    const Tensor<float, 2> a_transposed = transposed(a), b_transposed = transposed(b);
    Tensor<float, 2> all = random.uniform_tensor<2>({m, 3});
    std::copy(before.begin(), before.end(), all.begin());
    const GemmOptions plain = {.alpha = 0.5f, .beta = 2.0f, .activation = Activation::gelu};
    GemmOptions whole = plain;
    whole.residual = added;
    Engine engine(options(3));
    gemm(engine, a, b, all, whole);
    for (const bool a_is_transposed : {false, true}) {
      for (const bool b_is_transposed : {false, true}) {
        for (const std::int64_t stride : {1, 3}) {
          Tensor<float, 2> x({k, 1}), c({m, stride}), residual({m, stride});
          for (std::int64_t i = 0; i < k; ++i) x(i, 0) = b(i, 1);
          for (std::int64_t i = 0; i < m; ++i) c(i, 0) = before(i, 1), residual(i, 0) = added(i, 1);
          GemmOptions one = plain;
          one.transpose_a = a_is_transposed ? Transpose::yes : Transpose::no;
          one.transpose_b = b_is_transposed ? Transpose::yes : Transpose::no;
          one.residual = {residual.data(), {m, 1}, {stride, 1}};
          const View<float, 2> to(c.data(), {m, 1}, {stride, 1});
          gemm(engine, a_is_transposed ? a_transposed : a,
               b_is_transposed ? View<const float, 2>(x.data(), {1, k}) : View<const float, 2>(x), to, one);
          EXPECT_TRUE(same_bits(View<const float, 2>(to), View<const float, 2>(&all(0, 1), {m, 1}, {3, 1})))
              << m << " x " << k << ", stride " << stride;
        }
      }
    }
  }
}

// Adding to C itself is a residual too, for one block of K and for several.
TEST_P(GemmPromises, ResidualMayBeC) {
  Engine engine(options());
  Random random(3);
  for (const std::int64_t k : {20, 1700}) {
    const Tensor<float, 2> a = random.uniform_tensor<2>({30, k});
    const Tensor<float, 2> b = random.uniform_tensor<2>({k, 70});
    const Tensor<float, 2> before = random.uniform_tensor<2>({30, 70});
    Tensor<float, 2> expected({30, 70});
    gemm(engine, a, b, expected, {.residual = before.view()});
    Tensor<float, 2> c({30, 70});
    std::memcpy(c.data(), before.data(), sizeof(float) * 30 * 70);
    gemm(engine, a, b, c, {.residual = c.view()});
    EXPECT_TRUE(same_bits(c.view(), expected.view()));
    // One row, from which no stride leads anywhere.
    std::memcpy(c.data(), before.data(), sizeof(float) * 70);
    const View<float, 2> row(c.data(), {1, 70});
    gemm(engine, View<const float, 2>(a.data(), {1, k}), b, row,
         {.residual = View<const float, 2>(c.data(), {1, 70}, {99, 1})});
    EXPECT_TRUE(same_bits(row, View<float, 2>(expected.data(), {1, 70})));
  }
}

TEST_P(GemmPromises, TouchesNothingOutsideItsOperands) {
  Engine engine(options());
  Random random(4);
  const auto filled = [&](const Guarded<float>& buffer, std::int64_t size) {
    for (std::int64_t n = 0; n < size; ++n) buffer.data()[n] = random.uniform();
  };
  for (int repeat = 0; repeat < count(150, 30); ++repeat) {
    const std::int64_t m = random.integer(1, repeat % 3 == 0 ? 3 : 30);
    const std::int64_t n = random.integer(1, 140);
    const std::int64_t k = repeat % 10 == 0 ? random.integer(700, 1600) : random.integer(1, 70);
    for (const Against side : kBothSides) {
      const Guarded<float> a(m * k, side), b(k * n, side), c(m * n, side), bias(n, side), residual(m * n, side);
      filled(a, m * k);
      filled(b, k * n);
      filled(c, m * n);
      filled(bias, n);
      filled(residual, m * n);
      GemmOptions asked{.beta = 1.0f,
                        .activation = static_cast<Activation>(random.integer(0, static_cast<int>(kLastActivation)))};
      asked.transpose_a = random.once_in(2) ? Transpose::yes : Transpose::no;
      asked.transpose_b = random.once_in(2) ? Transpose::yes : Transpose::no;
      asked.bias = {bias.data(), static_cast<std::size_t>(n)};
      asked.residual = residual.view<2>({m, n});
      const bool ta = asked.transpose_a == Transpose::yes;
      const bool tb = asked.transpose_b == Transpose::yes;
      const View<const float, 2> left(a.data(), {ta ? k : m, ta ? m : k});
      const View<const float, 2> right(b.data(), {tb ? n : k, tb ? k : n});
      gemm(engine, left, right, c.view<2>({m, n}), asked);
      gemm(engine, left, PackedMatrix(engine, right, asked.transpose_b), c.view<2>({m, n}), asked);
      // Scratch for a product on this thread is no larger than it says.
      const std::int64_t floats = (ops::gemm_scratch_floats(engine.isa(), m, n, k, asked.transpose_a) + 15) / 16 * 16;
      const Guarded<float> scratch(floats, side);
      ops::run_gemm_block(engine.isa(),
                          ops::gemm_block(left, right, c.view<2>({m, n}), asked.transpose_a, asked.transpose_b),
                          scratch.data());
    }
  }
}

// With many rows all of B is packed first.
TEST_P(GemmPromises, ManyRowsTakeWhatIsReserved) {
  Random random(7);
  const std::int64_t m = 400, n = 110, k = 90;
  const Tensor<float, 2> a = random.uniform_tensor<2>({k, m});
  const Tensor<float, 2> b = random.uniform_tensor<2>({k, n});
  for (const int threads : {1, 3}) {
    Engine engine(options(threads));
    wait_for_workers(engine);
    Tensor<float, 2> expected({m, n}), c({m, n});
    gemm(engine, a, PackedMatrix(engine, b), expected, {.transpose_a = Transpose::yes});
    engine.release_scratch();
    reserve(engine, {.m = m, .n = n, .k = k});
    const AllocationCounter counter;
    gemm(engine, a, b, c, {.transpose_a = Transpose::yes});
    EXPECT_EQ(counter.count(), 0);
    EXPECT_TRUE(same_bits(c.view(), expected.view())) << threads << " threads";
  }
}

TEST_P(GemmPromises, AllocatesNothingTheSecondTime) {
  Random random(5);
  for (const int threads : {1, 3}) {
    Engine engine(options(threads));
    wait_for_workers(engine);
    const std::int64_t shapes[][3] = {{5, 4, 5}, {130, 70, 200}, {1, 900, 1600}, {100, 300, 1700}, {400, 70, 200}};
    for (const auto& [m, n, k] : shapes) {
      const Tensor<float, 2> a = random.uniform_tensor<2>({m, k});
      const Tensor<float, 2> b = random.uniform_tensor<2>({n, k});
      const PackedMatrix packed(engine, b, Transpose::yes);
      Tensor<float, 2> c({m, n});
      gemm(engine, a, packed, c);
      gemm(engine, a, b, c, {.transpose_b = Transpose::yes});
      const AllocationCounter counter;
      gemm(engine, a, packed, c);
      gemm(engine, a, b, c, {.transpose_b = Transpose::yes});
      const std::int64_t allocations = counter.count();
      EXPECT_EQ(allocations, 0) << m << "x" << n << "x" << k << " on " << threads;
    }
  }
}

TEST_P(GemmPromises, AllocatesNothingAfterReserve) {
  Random random(6);
  for (const auto& [n, threads] : {std::pair<std::int64_t, int>{300, 1}, {300, 3}, {1, 1}, {1, 3}}) {
    const std::int64_t m = 200, k = 1700, batch = 3;
    const Tensor<float, 3> a = random.uniform_tensor<3>({batch, m, k});
    const Tensor<float, 3> b = random.uniform_tensor<3>({batch, n, k});
    Tensor<float, 3> c({batch, m, n});
    Engine engine(options(threads));
    wait_for_workers(engine);
    const GemmShape shape{.batch = batch, .m = m, .n = n, .k = k};
    EXPECT_GT(workspace_bytes(engine, shape), 0u);
    reserve(engine, shape);
    const AllocationCounter counter;
    gemm(engine, a, b, c, {.transpose_b = Transpose::yes});
    const std::int64_t allocations = counter.count();
    EXPECT_EQ(allocations, 0);
  }
}

TEST(GemmArguments, AreNamedWhenTheyAreBad) {
  Engine engine(EngineOptions{.threads = 1});
  float memory[1000] = {};
  const auto view = [&](std::int64_t offset, std::int64_t rows, std::int64_t columns) {
    return View<float, 2>(memory + offset, {rows, columns});
  };
  const View<float, 2> a = view(0, 3, 4), b = view(100, 4, 5), c = view(200, 3, 5);
  EXPECT_EQ(refusal([&] { gemm(engine, view(0, 3, 7), b, c); }),
            "gemm: a has shape [3, 7], expected [any, 4] ([M, K], K that of b)");
  EXPECT_EQ(refusal([&] { gemm(engine, a, View<const float, 2>(), c); }),
            "gemm: b is not given (a view without memory or shape)");
  EXPECT_EQ(refusal([&] { gemm(engine, a, b, c, {.transpose_a = Transpose::yes}); }),
            "gemm: a has shape [3, 4], expected [4, any] ([K, M] with transpose_a, K that of b)");
  EXPECT_EQ(refusal([&] { gemm(engine, a, b, view(200, 4, 5)); }),
            "gemm: c has shape [4, 5], expected [3, 5] ([M, N])");
  EXPECT_EQ(refusal([&] {
              gemm(engine, a, b, View<float, 2>(nullptr, {3, 5}));
            }),
            "gemm: c of shape [3, 5] has no memory (a null pointer)");
  EXPECT_EQ(refusal([&] {
              const auto odd = reinterpret_cast<std::uintptr_t>(memory) + 801;
              gemm(engine, a, b, View<float, 2>(reinterpret_cast<float*>(odd), {3, 5}));
            }),
            "gemm: c lies at an address that is no multiple of a number's 4 bytes");
  EXPECT_EQ(refusal([&] { gemm(engine, a, b, view(5, 3, 5)); }), "gemm: c overlaps a in memory");
  EXPECT_EQ(refusal([&] { gemm(engine, a, b, view(101, 3, 5)); }), "gemm: c overlaps b in memory");
  EXPECT_EQ(refusal([&] {
              gemm(engine, a, b, View<float, 2>(memory + 200, {3, 5}, {2, 1}));
            }),
            "gemm: c of shape [3, 5] and strides [2, 1] overlaps itself in memory");
  EXPECT_EQ(refusal([&] {
              gemm(engine, View<float, 2>(memory, {3, 4}, {8, 2}), b, c);
            }),
            "gemm: a has the last stride 2, expected 1");
  EXPECT_EQ(refusal([&] { gemm(engine, a, b, c, {.bias = std::span<const float>(memory + 300, 4)}); }),
            "gemm: bias has shape [4], expected [5] ([N], N that of b)");
  EXPECT_EQ(refusal([&] { gemm(engine, a, b, c, {.residual = view(300, 3, 4)}); }),
            "gemm: residual has shape [3, 4], expected [3, 5] ([M, N])");
  EXPECT_EQ(refusal([&] { gemm(engine, a, b, c, {.residual = view(201, 3, 5)}); }),
            "gemm: c overlaps residual in memory");
  EXPECT_EQ(refusal([&] { gemm(engine, a, b, c, {.activation = static_cast<Activation>(9)}); }),
            "gemm: activation is none of the enumeration's values");
  const View<float, 3> batched_c(memory + 200, {1, 3, 5});
  EXPECT_EQ(refusal([&] { gemm(engine, a, b, c, {.batched_residual = batched_c}); }),
            "gemm: batched_residual is given for a single product, expected residual");
  const View<float, 3> batched_a(memory, {2, 3, 4}), batched_b(memory + 100, {2, 4, 5});
  EXPECT_EQ(refusal([&] { gemm(engine, batched_a, batched_b, batched_c); }),
            "gemm: b has shape [2, 4, 5], expected [1, any, any] ([batch, K, N], batch that of c)");
  EXPECT_EQ(refusal([&] {
              gemm(engine, batched_a, View<float, 3>(memory + 100, {1, 4, 5}), batched_c);
            }),
            "gemm: a has shape [2, 3, 4], expected [1, any, 4] ([batch, M, K], K that of b, batch that of c)");
  EXPECT_EQ(refusal([&] {
              gemm(engine, batched_a, batched_b, View<float, 3>(memory + 200, {2, 3, 5}, {0, 5, 1}));
            }),
            "gemm: c of shape [2, 3, 5] and strides [0, 5, 1] overlaps itself in memory");
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(refusal([&] {
              gemm(engine, View<float, 2>(memory, {huge, huge}, {huge, 1}), b, c);
            }),
            "gemm: a of shape [1099511627776, 1099511627776] and strides [1099511627776, 1] has more elements than 64 "
            "bits address");
  EXPECT_EQ(
      refusal([&] { static_cast<void>(workspace_bytes(engine, {.m = huge, .n = huge, .k = 1})); }),
      "gemm: shape [1, 1099511627776, 1099511627776, 1] ([batch, M, N, K]) has more elements than 64 bits address");
  // One row is not packed, however long: no number overflows on the way (the undefined-behaviour sanitizer looks).
  static_cast<void>(workspace_bytes(engine, {.m = 1, .n = 1, .k = std::int64_t{1} << 60}));
  EXPECT_EQ(refusal([&] { static_cast<void>(workspace_bytes(engine, {.m = -1, .n = 1, .k = 1})); }),
            "gemm: shape [1, -1, 1, 1] ([batch, M, N, K]) has a negative extent");
}

TEST(GemmArguments, AnEmptyBiasIsNoneWhateverItPointsTo) {
  Engine engine(EngineOptions{.threads = 1});
  float memory[6] = {2, 3, -1};
  const View<float, 2> a(memory, {1, 1}), b(memory + 1, {1, 1}), c(memory + 2, {1, 1});
  EXPECT_EQ(refusal([&] { gemm(engine, a, b, c, {.bias = std::span<const float>(memory + 3, 0)}); }), "");
  EXPECT_EQ(memory[2], 6.0f);
}

TEST(GemmArguments, APackedMatrixBelongsToItsInstructionSet) {
  EngineOptions scalar;
  scalar.isa = Isa::scalar;
  Engine plain(scalar);
  float memory[100] = {};
  const View<float, 2> a(memory, {2, 3}), b(memory + 10, {3, 4}), c(memory + 30, {2, 4});
  EXPECT_EQ(refusal([&] { gemm(plain, a, PackedMatrix(), c); }),
            "gemm: b is an empty PackedMatrix, expected one made from a matrix");
  for (const Isa isa : available_isas()) {
    if (isa == Isa::scalar) continue;
    EngineOptions other;
    other.isa = isa;
    Engine engine(other);
    EXPECT_EQ(refusal([&] { gemm(plain, a, PackedMatrix(engine, b), c); }),
              "gemm: b was packed for the instruction set " + std::string(name(isa)) +
                  ", expected scalar, that of the engine");
  }
}

}  // namespace headlight::test::gemm_promises_test
