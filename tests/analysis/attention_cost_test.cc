// What attention_step_bytes() foretells, against what the allocator then counts.
#include "headlight/analysis/attention_cost.h"

#include <malloc.h>

#include "baseline/attention_unfused.h"
#include "gtest/gtest.h"
#include "headlight/attention_backward.h"
#include "support/refusal.h"
#include "support/sanitizer.h"

namespace headlight::test::attention_cost_test {

using analysis::AttentionMethod;
using analysis::AttentionStep;
using analysis::AttentionStepBytes;

// Sanitizers bring an allocator of their own.
const bool kCounts = !under_sanitizer();

std::int64_t allocated() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

// Bytes that the allocator gave out for one pass forward and back, while all of it is held.
std::int64_t held_by(Engine& engine, const AttentionStep& step) {
  const std::int64_t before = allocated();
  const std::array<std::int64_t, 4> shape = {step.batch, step.length, step.heads, step.head_dim};
  Tensor<float, 4> query(shape), key(shape), value(shape), out(shape), out_gradient(shape);
  Tensor<float, 4> query_gradient, key_gradient(shape), value_gradient(shape), probabilities;
  Tensor<float, 3> log_sum_exp({step.batch, step.heads, step.length});
  if (!step.gradient_over_out) query_gradient = Tensor<float, 4>(shape);
  AttentionOptions options{.causal = step.causal, .log_sum_exp = log_sum_exp};
  const AttentionGradients gradients{step.gradient_over_out ? out.view() : query_gradient.view(), key_gradient,
                                     value_gradient};
  if (step.method == AttentionMethod::unfused) {
    probabilities = Tensor<float, 4>({step.batch, step.heads, step.length, step.length});
    options.probabilities.per_head = probabilities;
    baseline::attention_unfused(engine, query, key, value, out, options);
    baseline::attention_unfused_backward(engine, query, key, value, out_gradient, gradients, options);
  } else {
    attention(engine, query, key, value, out, options);
    attention_backward(engine, query, key, value, out, log_sum_exp, out_gradient, gradients, options);
  }
  return allocated() - before;
}

TEST(AttentionCost, IsWhatTheAllocatorCounts) {
  if (!kCounts) GTEST_SKIP() << "a sanitizer's allocator";
  for (const int threads : {1, 3}) {
    for (const AttentionStep& step :
         {AttentionStep{.method = AttentionMethod::unfused, .length = 1500, .head_dim = 32},
          AttentionStep{.method = AttentionMethod::unfused, .batch = 2, .length = 600, .heads = 3, .head_dim = 20},
          AttentionStep{.length = 3000, .head_dim = 32, .causal = Causal::top_left},
          AttentionStep{.batch = 2, .length = 1500, .heads = 3, .head_dim = 64, .gradient_over_out = true}}) {
      Engine engine({.threads = threads});
      const std::int64_t foretold = analysis::attention_step_bytes(engine, step).all();
      const std::int64_t held = held_by(engine, step);
      EXPECT_LE(std::abs(held - foretold), foretold / 100) << step.length << ": " << held << ", " << foretold;
    }
  }
}

TEST(AttentionCost, CountsByPurpose) {
  const Engine engine({.threads = 2});
  const AttentionStep step = {
      .method = AttentionMethod::unfused, .batch = 2, .length = 1000, .heads = 4, .head_dim = 64};
  const AttentionStepBytes unfused = analysis::attention_step_bytes(engine, step);
  constexpr std::int64_t kRows = 2 * 4 * 1000;
  EXPECT_EQ(unfused.inputs, 4 * 3 * kRows * 64);
  EXPECT_EQ(unfused.outputs, 4 * (kRows * 64 + kRows));
  EXPECT_EQ(unfused.gradients, 4 * 4 * kRows * 64);
  EXPECT_EQ(unfused.probabilities, 4 * kRows * 1000);
  // dP for each of two threads, and less than a MiB for products.
  EXPECT_NEAR(static_cast<double>(unfused.scratch), 2 * 4 * 1000.0 * 1000, 2 << 20);
  EXPECT_EQ(analysis::attention_step_flops(step).forward, 4.0 * 8 * 1000 * 1000 * 64);
  EXPECT_EQ(analysis::attention_step_flops(step).backward, 8.0 * 8 * 1000 * 1000 * 64);
}

// What recomputing needs beside the tensors is 4 bytes a row, and what threads work in.
TEST(AttentionCost, RecomputingGrowsWithTheLength) {
  const Engine engine({.threads = 1});
  const auto bytes = [&](std::int64_t length) {
    return analysis::attention_step_bytes(engine, {.length = length, .head_dim = 32, .causal = Causal::top_left});
  };
  EXPECT_EQ(bytes(100000).probabilities, 0);
  const std::int64_t more = bytes(200000).scratch - bytes(100000).scratch;
  // Of each row δ and a running sum, 12 bytes; and what blocks of keys wait by.
  EXPECT_LE(more, 100000 * 13);
  EXPECT_EQ(analysis::attention_step_flops({.length = 3, .head_dim = 1, .causal = Causal::top_left}).all(), 14 * 6);
}

TEST(AttentionCost, TheLongestFitsAndOneMoreDoesNot) {
  const Engine engine({.threads = 1});
  for (AttentionStep step :
       {AttentionStep{.method = AttentionMethod::unfused, .head_dim = 32}, AttentionStep{.heads = 3, .head_dim = 64}}) {
    for (const std::int64_t budget : {std::int64_t{10} << 20, std::int64_t{3} << 30}) {
      step.length = analysis::longest_sequence(engine, step, budget);
      EXPECT_GT(step.length, 500);
      EXPECT_LE(analysis::attention_step_bytes(engine, step).all(), budget);
      ++step.length;
      EXPECT_GT(analysis::attention_step_bytes(engine, step).all(), budget);
    }
    EXPECT_EQ(analysis::longest_sequence(engine, step, 0), 0);
    step.batch = 0;
    EXPECT_GE(analysis::longest_sequence(engine, step, 0), std::int64_t{1} << 40);  // of nothing
  }
}

TEST(AttentionCost, RefusesWhatMakesNoSense) {
  const Engine engine({.threads = 1});
  EXPECT_EQ(refusal([&] { (void)analysis::attention_step_bytes(engine, {.length = -1}); }),
            "attention_cost: length is -1, expected at least 0");
  EXPECT_EQ(refusal([&] { (void)analysis::attention_step_bytes(engine, {.length = std::int64_t{1} << 50}); }),
            "attention_cost: the step takes more than 10¹⁴ bytes");
}

}  // namespace headlight::test::attention_cost_test
