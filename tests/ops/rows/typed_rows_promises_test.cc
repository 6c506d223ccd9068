// What row-wise operations on memory of 16 bits promise beside their numbers.
#include <array>
#include <vector>

#include "gtest/gtest.h"
#include "headlight/activation.h"
#include "headlight/dropout.h"
#include "headlight/gate.h"
#include "headlight/gemm.h"
#include "headlight/head_rows.h"
#include "headlight/normalization.h"
#include "support/allocation_counter.h"
#include "support/guarded_matrix.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test::typed_rows_promises_test {

using TypedRowsPromises = EachIsa;
HEADLIGHT_ON_EVERY_ISA(TypedRowsPromises);

TEST_P(TypedRowsPromises, GiveTheSameBitsOnAnyNumberOfThreadsAndAlone) {
  Random random(11);
  const GuardedMatrix x(NumberType::bfloat16, 700, 387, 1, Against::back, random);
  const GuardedMatrix once(NumberType::float16, 700, 387, 0, Against::back, random);
  Engine one(options(1));
  layer_norm(one, x.const_view(), once.view());
  for (const int threads : more_threads()) {
    Engine engine(options(threads));
    const GuardedMatrix y(NumberType::float16, 700, 387, 3, Against::front, random);
    layer_norm(engine, x.const_view(), y.view());
    EXPECT_TRUE(y.holds(once.to())) << threads << " threads";
  }
  const GuardedMatrix alone(NumberType::float16, 1, 387, 0, Against::back, random);
  TypedView<2> row = x.const_view();
  row.data = static_cast<const std::uint16_t*>(row.data) + 500 * row.stride(0);
  row.shape[0] = 1;
  layer_norm(one, row, alone.view());
  for (std::int64_t e = 0; e < 387; ++e) EXPECT_EQ(alone.at(0, e), once.at(500, e));
}

TEST(TypedRowsMemory, NothingIsAllocatedAfterReserve) {
  Random random(12);
  const std::int64_t rows = count(300, 100);
  for (const int threads : {1, 3}) {
    for (const std::int64_t columns : {1, 700, 5000}) {
      const GuardedMatrix x(NumberType::bfloat16, rows, columns, 0, Against::back, random);
      const GuardedMatrix y(NumberType::float16, rows, columns, 0, Against::back, random);
      const GuardedMatrix y_too(NumberType::float16, rows, columns, 0, Against::back, random);
      const Tensor<float, 2> angles({rows, columns / 2 * 2});
      const std::vector<std::int64_t> ids(static_cast<std::size_t>(rows), 7);
      const std::array tables = {Embedding{x.const_view(), ids}};
      Tensor<float, 2> table({8, columns});
      const std::array gradients = {EmbeddingGradient{table, ids}};
      Engine engine({.threads = threads});
      wait_for_workers(engine);
      reserve_rows(engine, columns);
      EXPECT_GE(engine.scratch_bytes(), rows_workspace_bytes(engine, columns));
      const AllocationCounter counter;
      softmax(engine, x.const_view(), y.view());
      layer_norm(engine, x.const_view(), y.view(), {.residual = x.const_view()});
      layer_norm_backward(engine, x.const_view(), x.const_view(), {.x = y.view(), .residual = x.const_view()});
      rms_norm(engine, x.const_view(), y.view(), {.added = x.const_view()});
      rms_norm_backward(engine, x.const_view(), x.const_view(), {.x = y.view(), .residual = x.const_view()});
      gate(engine, Activation::silu, x.const_view(), x.const_view(), y.view());
      gate_backward(engine, Activation::silu, x.const_view(), x.const_view(), x.const_view(), y.view(), y_too.view());
      const TypedView<3> heads(x.type(), x.const_view().data, {rows, 1, columns});
      const MutableTypedView<3> to(y.type(), y.view().data, {rows, 1, columns});
      head_rows(engine, heads, to, {.norm = NormKind::rms, .rotation = {angles}});
      head_rows_backward(engine, heads, heads, {.x = to}, {.norm = NormKind::rms, .rotation = {angles}});
      dropout(engine, x.const_view(), y.view(), {}, x.const_view());
      embed(engine, tables, y.view());
      embed_backward(engine, x.const_view(), gradients);
      const std::int64_t allocations = counter.count();
      EXPECT_EQ(allocations, 0) << threads << " threads, " << columns;
    }
  }
}

// As in float32. Read into a buffer, this one would end in memory that is nobody's.
TEST_P(TypedRowsPromises, AResidualWithoutAGradientOfXIsNotRead) {
  Engine engine(options());
  Random random(13);
  const GuardedMatrix x(NumberType::bfloat16, 20, 33, 0, Against::back, random);
  const GuardedMatrix few(NumberType::bfloat16, 1, 33, 0, Against::back, random);
  TypedView<2> residual = few.const_view();
  residual.shape = {1, std::int64_t{1} << 40};
  std::vector<float> weight(33), expected(33);
  layer_norm_backward(engine, x.const_view(), x.const_view(), {.weight = expected});
  layer_norm_backward(engine, x.const_view(), x.const_view(), {.residual = residual, .weight = weight});
  EXPECT_EQ(weight, expected);
}

TEST(TypedRowsArguments, AreNamedWhenTheyAreWrong) {
  Engine engine({.threads = 1});
  Tensor<BFloat16, 2> x({4, 6});
  Tensor<float, 2> y({4, 6});
  const std::vector<float> five(5);
  EXPECT_EQ(refusal([&] {
              softmax(engine, x, MutableTypedView<2>(NumberType::int8, y.data(), {4, 6}));
            }),
            "softmax: y has type int8, expected float32, bfloat16 or float16");
  EXPECT_EQ(refusal([&] {
              softmax(engine, x, View<float, 2>(y.data(), {4, 5}));
            }),
            "softmax: y has shape [4, 5], expected [4, 6] (the shape of x)");
  EXPECT_EQ(refusal([&] {
              softmax(engine, x, MutableTypedView<2>(NumberType::float16, x.data(), {4, 6}));
            }),
            "softmax: y overlaps x in memory")
      << "the same view of another type";
  EXPECT_EQ(
      refusal([&] {
        softmax(engine, TypedView<2>(NumberType::bfloat16, reinterpret_cast<std::byte*>(x.data()) + 1, {2, 6}), y);
      }),
      "softmax: x lies at an address that is no multiple of a number's 2 bytes");
  EXPECT_EQ(refusal([&] { layer_norm(engine, x, y, {.weight = five}); }),
            "layer_norm: weight has shape [5], expected [6] ([E], or empty)");
  EXPECT_EQ(refusal([&] {
              layer_norm(engine, x, y, {.residual = TypedView<2>(NumberType::bfloat16, x.data(), {4, 5})});
            }),
            "layer_norm: residual has shape [4, 5], expected [4, 6] (the shape of x)");
  EXPECT_EQ(refusal([&] { layer_norm_backward(engine, x, y, {.x = y}, {.residual = x}); }),
            "layer_norm_backward: residual is given, expected none: x is the sum that was normalised");
  EXPECT_EQ(refusal([&] { activate(engine, static_cast<Activation>(9), x, y); }),
            "activate: activation is 9, expected one of the enum");
  EXPECT_EQ(refusal([&] { dropout(engine, x, y, {.probability = 1.0f}); }),
            "dropout: probability is 1.000000, expected a probability in [0, 1)");
  const std::vector<std::int64_t> ids = {0, 1, 4, 2};
  EXPECT_EQ(refusal([&] {
              embed(engine, std::array{Embedding{x, ids}}, y);
            }),
            "embed: id 2 of table 0 is 4, expected 0 to 3");
  EXPECT_EQ(refusal([&] { bias_backward(engine, x, {}); }),
            "bias_backward: bias_gradient has shape [0], expected [6] ([N])");
}

}  // namespace headlight::test::typed_rows_promises_test
