// What the backward passes of the row-wise operations promise beside their numbers.
#include <functional>

#include "gtest/gtest.h"
#include "headlight/activation.h"
#include "headlight/gate.h"
#include "headlight/gemm.h"
#include "headlight/head_rows.h"
#include "headlight/loss.h"
#include "headlight/normalization.h"
#include "support/allocation_counter.h"
#include "support/compare.h"
#include "support/isas.h"
#include "support/quick.h"
#include "support/random.h"
#include "support/refusal.h"
#include "support/workers.h"

namespace headlight::test::row_gradients_promises_test {

using RowGradientsPromisesTest = EachIsa;
HEADLIGHT_ON_EVERY_ISA(RowGradientsPromisesTest);

// Inputs of every operation, and what it writes.
struct Work {
  static constexpr std::int64_t kRows = 700;
  static constexpr std::int64_t kColumns = 387;

  Work() : out({kRows, kColumns}), sums({kColumns}), table({50, kColumns}) {
    Random random(1);
    x = random.normal_tensor<2>({kRows, kColumns});
    gradient = random.normal_tensor<2>({kRows, kColumns});
    pooled = random.normal_tensor<2>({3, kColumns});
    for (std::int64_t n = 0; n < kRows; ++n) ids.push_back(random.integer(0, 49));
  }

  Tensor<float, 2> x, gradient, pooled, out;
  Tensor<float, 1> sums;
  Tensor<float, 2> table;
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> offsets = {0, 100, 101, kRows};
};

using Operation = std::function<void(Engine&, Work&)>;

std::vector<Operation> operations() {
  constexpr std::int64_t kRows = Work::kRows, kHeadDim = 43;  // 9 heads
  const auto sums = [](Work& w) { return std::span<float>(w.sums.data(), static_cast<std::size_t>(w.sums.size())); };
  return {[](Engine& e, Work& w) { activate_backward(e, Activation::gelu, w.x, w.gradient, w.out); },
          [](Engine& e, Work& w) { softmax_backward(e, w.x, w.gradient, w.out); },
          [=](Engine& e, Work& w) { layer_norm_backward(e, w.x, w.gradient, {.x = w.out, .weight = sums(w)}); },
          [=](Engine& e, Work& w) {
            rms_norm_backward(e, w.x, w.gradient, {.x = w.out, .weight = sums(w)}, {.epsilon = 1e-5f});
          },
          [](Engine& e, Work& w) { gate_backward(e, Activation::silu, w.x, w.gradient, w.gradient, w.x, w.out); },
          [=](Engine& e, Work& w) {
            const auto heads = [](Tensor<float, 2>& rows) { return View<float, 3>(rows.data(), {kRows, 9, kHeadDim}); };
            const View<float, 2> angles(w.gradient.data(), {kRows, 30}, {Work::kColumns, 1});
            head_rows_backward(e, heads(w.x), heads(w.gradient), {.x = heads(w.out), .weight = sums(w).first(kHeadDim)},
                               {.norm = NormKind::rms,
                                .weight = {w.pooled.data(), kHeadDim},
                                .one_plus_weight = true,
                                .rotation = {angles}});
          },
          [=](Engine& e, Work& w) { bias_backward(e, w.gradient, sums(w)); },
          [](Engine& e, Work& w) {
            const std::array<EmbeddingGradient, 1> tables = {EmbeddingGradient{w.table, w.ids}};
            embed_backward(e, w.gradient, tables);
          },
          [](Engine& e, Work& w) { mean_pool_backward(e, w.x, w.offsets, w.pooled, w.out, true); },
          [](Engine& e, Work& w) { (void)cross_entropy(e, w.x, w.ids, {.logits_gradient = w.out}); }};
}

TEST_P(RowGradientsPromisesTest, GiveTheSameBitsOnAnyNumberOfThreads) {
  Engine one(options(1));
  for (const Operation& operation : operations()) {
    Work once;
    operation(one, once);
    for (const int threads : more_threads()) {
      Engine engine(options(threads));
      Work again;
      operation(engine, again);
      EXPECT_TRUE(same_bits(again.out, once.out)) << threads << " threads";
      EXPECT_TRUE(same_bits(again.sums, once.sums)) << threads << " threads";
      EXPECT_TRUE(same_bits(again.table, once.table)) << threads << " threads";
    }
  }
}

TEST_P(RowGradientsPromisesTest, AllocateNothingOnTheSecondCall) {
  for (const int threads : {1, 3}) {
    Engine engine(options(threads));
    wait_for_workers(engine);
    for (const Operation& operation : operations()) {
      Work work;
      operation(engine, work);
      const AllocationCounter counter;
      operation(engine, work);
      EXPECT_EQ(counter.count(), 0) << threads << " threads";
    }
  }
}

TEST(RowGradientsArguments, AreNamedWhenTheyAreWrong) {
  Engine engine;
  Tensor<float, 2> x({4, 6}), y({4, 5}), pooled({2, 6});
  std::vector<float> five(5);
  const std::vector<std::int64_t> ids = {0, 1, 9, 0}, offsets = {0, 3, 4};
  EXPECT_EQ(refusal([&] { activate_backward(engine, Activation::relu, x, y, x); }),
            "activate_backward: y_gradient has shape [4, 5], expected [4, 6] (the shape of x)");
  EXPECT_EQ(refusal([&] { activate_backward(engine, Activation::relu, {}, x, x); }),
            "activate_backward: x is not given (a view without memory or shape)");
  EXPECT_EQ(refusal([&] { softmax_backward(engine, x, x, y); }),
            "softmax_backward: x_gradient has shape [4, 5], expected [4, 6] (the shape of y)");
  EXPECT_EQ(refusal([&] { bias_backward(engine, x, five); }),
            "bias_backward: bias_gradient has shape [5], expected [6] ([N])");
  EXPECT_EQ(refusal([&] { layer_norm_backward(engine, x, x, {.weight = five}); }),
            "layer_norm_backward: weight's gradient has shape [5], expected [6] ([E], or empty)");
  EXPECT_EQ(refusal([&] { layer_norm_backward(engine, x, x, {.x = x}, {.residual = x}); }),
            "layer_norm_backward: residual is given, expected none: x is the sum that was normalised");
  EXPECT_EQ(refusal([&] { mean_pool_backward(engine, x, offsets, pooled, x, true); }),
            "mean_pool_backward: x_gradient overlaps x in memory");
  EXPECT_EQ(refusal([&] {
              const std::array<EmbeddingGradient, 1> tables = {EmbeddingGradient{pooled, ids}};
              embed_backward(engine, x, tables);
            }),
            "embed_backward: id 2 of table 0 is 9, expected 0 to 1");
  EXPECT_EQ(refusal([&] { (void)cross_entropy(engine, x, ids); }),
            "cross_entropy: label 2 is 9, expected 0 to 5, or -100 for none");
  EXPECT_EQ(refusal([&] { (void)cross_entropy(engine, x, offsets); }),
            "cross_entropy: labels has 3 entries, expected 4 (one for each row of logits)");
}

// What layer_norm_backward() writes lies apart from all else that it writes or reads, but where the header says so.
TEST(RowGradientsArguments, GradientsOfALayerNormLieApart) {
  Engine engine;
  Tensor<float, 2> x({4, 6}), y_gradient({4, 6}), x_gradient({4, 6}), residual({4, 6});
  std::vector<float> weight(6), of_weight(6), of_bias(6);
  const std::span<float> in_x_gradient(x_gradient.data() + 6, 6), in_residual(residual.data() + 18, 6);
  const auto refused = [&](const LayerNormGradients& gradients, std::span<const float> of_forward) {
    return refusal([&] { layer_norm_backward(engine, x, y_gradient, gradients, {.weight = of_forward}); });
  };
  const View<float, 2> to = x_gradient;
  EXPECT_EQ(refused({.weight = of_weight, .bias = of_weight}, weight),
            "layer_norm_backward: weight's gradient overlaps bias's gradient in memory");
  EXPECT_EQ(refused({.weight = weight}, weight), "layer_norm_backward: weight's gradient overlaps weight in memory");
  EXPECT_EQ(refused({.bias = weight}, weight), "layer_norm_backward: bias's gradient overlaps weight in memory");
  EXPECT_EQ(refused({.x = to}, in_x_gradient), "layer_norm_backward: x's gradient overlaps weight in memory");
  EXPECT_EQ(refused({.x = to, .weight = in_x_gradient}, weight),
            "layer_norm_backward: x's gradient overlaps weight's gradient in memory");
  EXPECT_EQ(refused({.x = to, .bias = in_x_gradient}, {}),
            "layer_norm_backward: x's gradient overlaps bias's gradient in memory");
  EXPECT_EQ(refused({.x = to, .residual = residual, .weight = in_residual}, weight),
            "layer_norm_backward: weight's gradient overlaps residual in memory");
  EXPECT_EQ(refused({.x = to, .residual = residual, .bias = in_residual}, weight),
            "layer_norm_backward: bias's gradient overlaps residual in memory");
  EXPECT_EQ(refused({.x = x, .residual = x, .weight = of_weight, .bias = of_bias}, weight), "");
  EXPECT_EQ(refused({.x = to, .residual = residual, .weight = of_weight, .bias = of_bias}, in_residual), "");
}

// Numbers that are checked once and then trusted are not written over on the way.
TEST(RowGradientsArguments, IndicesLieApartFromWhatIsWritten) {
  Engine engine;
  Tensor<float, 2> rows({40, 1}), pooled({40, 1}), one_table({2, 1});
  std::vector<std::int64_t> zeros(40), offsets;
  for (std::int64_t n = 0; n <= 40; ++n) offsets.push_back(n);
  const auto over = [](std::vector<std::int64_t>& numbers) {
    return View<float, 2>(reinterpret_cast<float*>(numbers.data()) + 2, {40, 1});
  };
  EXPECT_EQ(refusal([&] { (void)cross_entropy(engine, rows, zeros, {.logits_gradient = over(zeros)}); }),
            "cross_entropy: logits_gradient overlaps labels in memory");
  EXPECT_EQ(refusal([&] { mean_pool_backward(engine, rows, offsets, pooled, over(offsets), false); }),
            "mean_pool_backward: x_gradient overlaps offsets in memory");
  const std::array<EmbeddingGradient, 2> tables = {EmbeddingGradient{over(zeros), std::span(offsets).first(40)},
                                                   EmbeddingGradient{one_table, zeros}};
  EXPECT_EQ(refusal([&] { embed_backward(engine, rows, tables); }),
            "embed_backward: table 0 overlaps ids of table 1 in memory");
  EXPECT_EQ(refusal([&] {
              embed_backward(engine, rows, std::array{EmbeddingGradient{over(zeros), zeros}});
            }),
            "embed_backward: table 0 overlaps ids of table 0 in memory");
}

}  // namespace headlight::test::row_gradients_promises_test
