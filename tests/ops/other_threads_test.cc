// Which calls use other threads than the caller's: seen by a pool that counts what it is asked to run.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/engine.h"
#include "headlight/gemm.h"
#include "headlight/layers.h"
#include "headlight/tensor.h"
#include "support/compare.h"
#include "support/random.h"

namespace headlight::other_threads_test {

using test::Random;
using test::same_bits;

constexpr int kWorkers = 4;

class CountingPool {
 public:
  [[nodiscard]] EngineOptions engine_options(int threads) {
    executor_.context = this;
    executor_.worker_count = [](void*) { return kWorkers; };
    executor_.inside_worker = [](void*) { return false; };
    executor_.run = [](void* context, int count, void (*task)(void*, int), void* argument) -> void* {
      static_cast<CountingPool*>(context)->tasks_ += count;
      for (int index = 0; index < count; ++index) task(argument, index);
      return nullptr;
    };
    executor_.wait = [](void*, void*) {};
    EngineOptions options;
    options.threads = threads;
    options.executor = &executor_;
    return options;
  }

  // What it was asked to run since it was asked last.
  [[nodiscard]] int take_tasks() {
    const int tasks = tasks_;
    tasks_ = 0;
    return tasks;
  }

 private:
  Executor executor_;
  int tasks_ = 0;
};

struct Sizes {
  std::int64_t length, heads, head_dim;  // of attention
  std::int64_t rows, width;              // of a product
};

// Tasks handed to other threads by attention, its gradient and both kinds of products.
std::vector<int> tasks_of_calls(CountingPool& pool, int threads, const Sizes& sizes) {
  Engine engine(pool.engine_options(threads));
  const View<float, 4>::Shape shape = {1, sizes.length, sizes.heads, sizes.head_dim};
  Tensor<float, 4> query(shape), key(shape), value(shape), out(shape), out_gradient(shape);
  Tensor<float, 4> query_gradient(shape), key_gradient(shape), value_gradient(shape);
  Tensor<float, 3> log_sum_exp({1, sizes.heads, sizes.length});
  Tensor<float, 2> a({sizes.rows, sizes.width}), b({sizes.width, sizes.width}), c(a.shape());
  const PackedMatrix packed(engine, b);
  static_cast<void>(pool.take_tasks());

  std::vector<int> tasks;
  AttentionOptions options;
  options.log_sum_exp = log_sum_exp;
  attention(engine, query, key, value, out, options);
  tasks.push_back(pool.take_tasks());
  attention_backward(engine, query, key, value, out, log_sum_exp, out_gradient,
                     {query_gradient, key_gradient, value_gradient});
  tasks.push_back(pool.take_tasks());
  gemm(engine, a, packed, c);
  tasks.push_back(pool.take_tasks());
  gemm(engine, a, b, c);
  tasks.push_back(pool.take_tasks());
  return tasks;
}

constexpr Sizes kLarge = {256, 12, 64, 256, 512};
constexpr Sizes kSmall = {5, 2, 4, 8, 8};

TEST(OtherThreads, AreAskedForLargeCalls) {
  CountingPool pool;
  for (const int tasks : tasks_of_calls(pool, kWorkers, kLarge)) EXPECT_GT(tasks, 0);
}

TEST(OtherThreads, AreLeftAloneByAnEngineOfOneThread) {
  CountingPool pool;
  EXPECT_EQ(tasks_of_calls(pool, 1, kLarge), std::vector<int>(4, 0));
}

TEST(OtherThreads, AreLeftAloneByCallsThatAreShorterThanWakingThem) {
  CountingPool pool;
  EXPECT_EQ(tasks_of_calls(pool, kWorkers, kSmall), std::vector<int>(4, 0));
}

// What the heads give W_O is a copy where they are put side by side, of 8 MiB here.
TEST(OtherThreads, CopyTheHeadsThatAreAskedFor) {
  CountingPool pool;
  Engine engine(pool.engine_options(kWorkers));
  MultiHeadAttention layer({.width = 256, .heads = 4});
  layer.initialize(1);
  Random random(1);
  const auto x = random.normal_tensor<3>({64, 128, 256});
  Tensor<float, 3> y(x.shape()), heads(x.shape()), scaled(x.shape());
  const auto tasks_with = [&](const HeadAccess& access) {
    static_cast<void>(pool.take_tasks());
    layer.forward(engine, x, x, x, y, {}, {}, access);
    return pool.take_tasks();
  };
  static_cast<void>(tasks_with({}));  // packs the weights
  const int without = tasks_with({.outputs = heads});
  EXPECT_GT(tasks_with({.outputs = heads, .scaled_outputs = scaled}), without);
  EXPECT_TRUE(same_bits(scaled, heads));
}

}  // namespace headlight::other_threads_test
