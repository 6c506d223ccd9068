// Calls that are told to end: nothing more is begun, nobody waits for what never comes, and the next call is whole.
#include "runtime/cancellation.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/gemm.h"
#include "headlight/tensor.h"
#include "runtime/engine_state.h"
#include "runtime/parallel.h"
#include "support/quick.h"

namespace headlight::runtime::stop_test {

// The question that counts how often it is asked, and says so from the limit on.
std::atomic<int> asked = 0;
std::atomic<int> limit = 0;
std::atomic<bool> elsewhere = false;
std::thread::id caller;
bool ask() noexcept {
  if (std::this_thread::get_id() != caller) elsewhere = true;
  return ++asked > limit;
}

class Stopping : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    caller = std::this_thread::get_id();
    elsewhere = false;
    end_after(1'000'000'000);
    engine_.state().cancellation_check = &ask;
  }
  void TearDown() override { EXPECT_FALSE(elsewhere) << "another thread was asked"; }
  static void end_after(int questions) {
    asked = 0;
    limit = questions;
  }
  Engine engine_{{.threads = GetParam(), .isa = Isa::scalar}};
};
INSTANTIATE_TEST_SUITE_P(Threads, Stopping, ::testing::Values(1, 2, 5));

TEST_P(Stopping, NoFurtherTaskBegins) {
  std::atomic<int> done = 0;
  parallel_for(engine_, 1000, GetParam(), [&](std::int64_t, int) { ++done; });
  EXPECT_EQ(done, 1000);
  end_after(3);
  done = 0;
  // Whoever is not the caller waits for what that was told: else it would be done before.
  parallel_for(engine_, 1000, GetParam(), [&](std::int64_t, int worker) {
    ++done;
    while (worker != 0 && !is_cancelled()) std::this_thread::yield();
  });
  EXPECT_LE(done, 3 + GetParam() - 1);
  parallel_for(engine_, 10, GetParam(), [&](std::int64_t, int) { done = 1000; });
  EXPECT_LT(done, 1000) << "and none of the next parallel call";
  end_after(1000);
  parallel_for(engine_, 10, GetParam(), [&](std::int64_t, int) { done = 1000; });
  EXPECT_EQ(done, 1000);
}

TEST_P(Stopping, LongTasksAskAsTheyGo) {
  end_after(5);
  parallel_for(engine_, GetParam(), GetParam(), [&](std::int64_t, int) {
    while (!is_cancelled()) std::this_thread::yield();
  });
  EXPECT_GT(asked, 5);
}

// The caller has no task left, and sleeps over the worker's.
TEST_P(Stopping, TheCallerAsksWhileItWaits) {
  if (GetParam() == 1) GTEST_SKIP() << "there is nobody to wait for";
  end_after(30);
  std::atomic<bool> taken = false;
  parallel_for(engine_, 2, 2, [&](std::int64_t, int worker) {
    if (worker == 0) {
      while (!taken) std::this_thread::yield();
    } else {
      taken = true;
      while (!is_cancelled()) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  EXPECT_GT(asked, 30);
}

TEST_P(Stopping, CallsWithinTasksEndWithTheirs) {
  end_after(4);
  Engine inner({.threads = 1, .isa = Isa::scalar});
  std::atomic<int> done = 0;
  parallel_for(engine_, GetParam(), GetParam(), [&](std::int64_t, int) {
    while (!is_cancelled()) parallel_for(inner, 1, 1, [&](std::int64_t, int) { std::this_thread::yield(); });
    parallel_for(inner, 100, 1, [&](std::int64_t, int) { ++done; });
  });
  EXPECT_EQ(done, 0);
}

// Panels are kept by whoever multiplies by them later.
TEST_P(Stopping, NoMatrixIsHalfPacked) {
  const Tensor<float, 2> b({64, 4096});
  for (const int questions : {0, 1, 7}) {
    end_after(questions);
    // Workers may have packed everything before the caller has asked that often: then the matrix is whole.
    bool thrown = false;
    try {
      PackedMatrix(engine_, b, Transpose::no, NumberType::float32);
    } catch (const Cancelled&) {
      thrown = true;
    }
    EXPECT_EQ(thrown, asked > questions);
    EXPECT_TRUE(thrown || (GetParam() > 1 && questions > 0));
  }
  end_after(1'000'000'000);
  EXPECT_EQ(PackedMatrix(engine_, b).columns(), 4096);
}

// Each block of K of a panel may lie in memory that the system has to find first.
TEST_P(Stopping, PackingOnePanelAsksBeforeEachBlock) {
  Tensor<float, 2> b({200000, 1});  // a panel of every instruction set, thirteen blocks of int8
  for (const NumberType type :
       {NumberType::float32, NumberType::bfloat16, NumberType::float16, NumberType::int8, NumberType::int4}) {
    end_after(1'000'000'000);
    EXPECT_TRUE(PackedMatrix(engine_, b, Transpose::no, type));
    EXPECT_GE(asked, 10);
    end_after(4);
    EXPECT_THROW(PackedMatrix(engine_, b, Transpose::no, type), Cancelled);
    EXPECT_LE(asked, 7) << "went on";
  }
}

// However long a sum is, a task of few rows and columns takes milliseconds for each block of it.
TEST_P(Stopping, OneProductAsksBetweenBlocksOfK) {
  Tensor<float, 2> a({7680, 3}), b({7680, 2}), c({3, 2});
  for (float& x : a) x = 0.5f;
  for (float& x : b) x = 2.0f;
  const auto multiply = [&] { gemm(engine_, a, b, c, {.transpose_a = Transpose::yes}); };
  end_after(1'000'000'000);
  multiply();
  EXPECT_GE(asked, 9);
  end_after(4);
  multiply();
  EXPECT_LE(asked, 7) << "went on";
  end_after(1'000'000'000);
  multiply();
  for (const float x : c) EXPECT_EQ(x, 7680.0f);
}

// Where a block of keys waits for the one before it, that one may have gone: at whatever question the call ends.
TEST_P(Stopping, GradientsEndAtAnyQuestion) {
  const std::array<std::int64_t, 4> shape{1, 700, 2, 8};
  Tensor<float, 4> query(shape), out_gradient(shape), by_query(shape), by_key(shape), by_value(shape);
  for (std::size_t i = 0; float& x : query) x = static_cast<float>(i++ % 17) / 16.0f - 0.5f;
  for (float& x : out_gradient) x = 0.25f;
  Tensor<float, 4> out(shape);
  Tensor<float, 3> log_sum_exp({1, 2, 700});
  AttentionOptions options;
  options.log_sum_exp = log_sum_exp;
  attention(engine_, query, query, query, out, options);
  const auto differentiate = [&] {
    attention_backward(engine_, query, query, query, out, log_sum_exp, out_gradient,
                       {.query = by_query, .key = by_key, .value = by_value}, {});
  };
  end_after(1'000'000'000);
  differentiate();
  const int questions = asked;
  const std::vector<float> whole(by_query.begin(), by_query.end());
  EXPECT_GT(questions, 4);
  for (int n = 0; n < questions; n += test::count(1, 5)) {
    end_after(n);
    differentiate();
  }
  end_after(1'000'000'000);
  differentiate();
  EXPECT_EQ(std::vector<float>(by_query.begin(), by_query.end()), whole);
}

}  // namespace headlight::runtime::stop_test
