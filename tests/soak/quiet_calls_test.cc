// After reserve() a call takes no memory, no lock and, on an engine of one thread, nothing of the system at all: shown
// by counting the first two and by a filter under which every system call but exit ends the process. And workers that
// wait for work use no CPU.
#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <ctime>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "headlight/attention.h"
#include "headlight/attention_backward.h"
#include "headlight/gemm.h"
#include "headlight/layers.h"
#include "headlight/normalization.h"
#include "soak/lock_counter.h"
#include "support/allocation_counter.h"
#include "support/random.h"
#include "support/workers.h"
#ifdef HEADLIGHT_SOAK_MODELS
#include "headlight/models/text_encoder.h"
#include "models/tiny_bert.h"
#endif

namespace headlight::soak::quiet_calls_test {

using test::Random;

// A call for which `engine` has reserved what it needs.
struct QuietCall {
  std::string name;
  std::function<void()> run;
};

constexpr std::int64_t kRows = 90, kKeys = 300, kHeads = 3, kHeadDim = 32, kWidth = kHeads * kHeadDim;

// Everything that the calls read and write.
class QuietCalls : public testing::TestWithParam<int> {
 protected:
  std::vector<QuietCall> reserved_calls() {
    std::vector<QuietCall> calls;
    add_attention(calls);
    add_products(calls);
    add_layers(calls);
    return calls;
  }

  Engine engine_{EngineOptions{.threads = GetParam()}};

 private:
  void add_attention(std::vector<QuietCall>& calls) {
    const AttentionShape shape = {2, kRows, kKeys, kHeads, kHeads, kHeadDim, kHeadDim};
    reserve(engine_, shape);
    reserve_backward(engine_, shape);
    for (std::int64_t n = 0; n < key_.size(); ++n) cache_.data()[n] = BFloat16(key_.data()[n]);
    const AttentionOptions options = {.causal = Causal::bottom_right, .log_sum_exp = log_sum_exp_};
    calls.push_back({"attention", [=, this] { attention(engine_, query_, key_, value_, out_, options); }});
    calls.push_back({"attention over bfloat16", [this] { attention(engine_, query_, cache_, cache_, out_); }});
    calls.push_back({"attention_backward", [this] {
                       attention_backward(engine_, query_, key_, value_, out_, log_sum_exp_, out_, {dq_, dk_, dv_});
                     }});
  }

  void add_products(std::vector<QuietCall>& calls) {
    reserve(engine_, GemmShape{.m = kRows, .n = kWidth, .k = kWidth});
    calls.push_back({"gemm", [this] { gemm(engine_, a_, b_, c_); }});
    for (const NumberType type : {NumberType::float32, NumberType::bfloat16, NumberType::int8}) {
      packed_.emplace_back(engine_, b_, Transpose::no, type);
      reserve(engine_, GemmShape{.m = kRows, .n = kWidth, .k = kWidth, .packed = true, .type = type});
    }
    for (const PackedMatrix& packed : packed_)
      calls.push_back({"gemm, packed", [this, &packed] { gemm(engine_, a_, packed, c_); }});
    calls.push_back({"softmax", [this] { softmax(engine_, a_, c_); }});
    calls.push_back({"layer_norm", [this] { layer_norm(engine_, a_, c_); }});
  }

  void add_layers(std::vector<QuietCall>& calls) {
    layer_.initialize(1);
    layer_.reserve(engine_, 1, kRows);
    calls.push_back({"a transformer layer", [this] {
                       layer_.forward(engine_, {a_.data(), {1, kRows, kWidth}}, {c_.data(), {1, kRows, kWidth}});
                     }});
#ifdef HEADLIGHT_SOAK_MODELS
    model_.reserve(engine_, ids_.size());
    calls.push_back({"a model", [this] { model_.embed(engine_, ids_, {}, vectors_); }});
#endif
  }

  Random random_{1};
  Tensor<float, 4> query_ = random_.normal_tensor<4>({2, kRows, kHeads, kHeadDim}), out_{query_.shape()},
                   dq_{query_.shape()};
  Tensor<float, 4> key_ = random_.normal_tensor<4>({2, kKeys, kHeads, kHeadDim}), dk_{key_.shape()};
  Tensor<float, 4> value_ = random_.normal_tensor<4>(key_.shape()), dv_{key_.shape()};
  Tensor<float, 3> log_sum_exp_{{2, kHeads, kRows}};
  Tensor<BFloat16, 4> cache_{key_.shape()};
  Tensor<float, 2> a_ = random_.normal_tensor<2>({kRows, kWidth}), b_ = random_.normal_tensor<2>({kWidth, kWidth});
  Tensor<float, 2> c_{{kRows, kWidth}};
  std::vector<PackedMatrix> packed_;
  TransformerEncoderLayer layer_{TransformerLayerOptions{.width = kWidth, .heads = kHeads}};
#ifdef HEADLIGHT_SOAK_MODELS
  static models::TextEncoder load() {
    const test::ScratchFolder folder;
    return models::load(test::TinyBert().write(folder));
  }
  models::TextEncoder model_ = load();
  Tensor<std::int64_t, 2> ids_{{3, 8}};
  Tensor<float, 2> vectors_{{3, test::TinyBert::kWidth}};
#endif
};

TEST(Locks, AreCounted) {
  const std::int64_t before = locks_taken();
  std::mutex mutex;
  { const std::scoped_lock lock(mutex); }
  EXPECT_EQ(locks_taken() - before, 1);
}

TEST_P(QuietCalls, AllocateAndLockNothing) {
  const std::vector<QuietCall> calls = reserved_calls();
  test::wait_for_workers(engine_);
  for (const QuietCall& call : calls) {
    const std::int64_t locks_before = locks_taken();
    const test::AllocationCounter counter;
    call.run();
    const std::int64_t allocations = counter.count(), locks = locks_taken() - locks_before;
    EXPECT_EQ(allocations, 0) << call.name;
    EXPECT_EQ(locks, 0) << call.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, QuietCalls, testing::Values(1, 3));

// How a child ends that may only read, write and exit while it makes the call (seccomp(2), strict mode): 0, or the
// signal that it gets for any other system call. −1 where the kernel has no such filter.
int end_of_child_without_system_calls(const std::function<void()>& call) {
  constexpr int kNoFilter = 77;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) ::_exit(kNoFilter);
    call();
    ::syscall(SYS_exit, 0);  // _exit() would end a group of threads, which is another call
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -2;
  if (WIFEXITED(status)) return WEXITSTATUS(status) == kNoFilter ? -1 : WEXITSTATUS(status);
  return WTERMSIG(status);
}

class QuietCallsOfOneThread : public QuietCalls {};

TEST_P(QuietCallsOfOneThread, AskTheSystemForNothing) {
  const int control = end_of_child_without_system_calls([] { ::getppid(); });
  if (control == -1) GTEST_SKIP() << "the kernel has no filter of system calls";
  EXPECT_EQ(control, SIGKILL);
  for (const QuietCall& call : reserved_calls()) {
    // Made in the child for the first time: what reserve() has taken is enough.
    EXPECT_EQ(end_of_child_without_system_calls(call.run), 0) << call.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, QuietCallsOfOneThread, testing::Values(1));

// CPU time of this process, all threads together.
double cpu_milliseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

// Three workers that did not sleep would use 400 ms on two cores, or all of one.
TEST(IdleWorkers, UseNoCpu) {
  Engine engine({.threads = 4});
  test::wait_for_workers(engine);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double before = cpu_milliseconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu_milliseconds() - before, 10);
}

}  // namespace headlight::soak::quiet_calls_test
