// Options, environment, failure, fork and the caller's own pool.
#include "headlight/engine.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/cores.h"
#include "runtime/cpu.h"
#include "runtime/parallel.h"
#include "support/allocation_counter.h"
#include "support/sanitizer.h"
#include "support/workers.h"

namespace headlight::runtime::engine_test {

// Sets an environment variable (or takes it away) for a while.
class ScopedVariable {
 public:
  ScopedVariable(const char* variable, const char* value) : variable_(variable) {
    if (const char* const before = std::getenv(variable)) before_ = before;
    set(value);
  }
  ~ScopedVariable() { set(before_ ? before_->c_str() : nullptr); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  void set(const char* value) const {
    if (value == nullptr) {
      unsetenv(variable_);
    } else {
      setenv(variable_, value, 1);
    }
  }

  const char* variable_;
  std::optional<std::string> before_;
};

EngineOptions with_threads(int threads) {
  EngineOptions options;
  options.threads = threads;
  return options;
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing thrown";
}

void expect_words(const std::string& message, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(message.find(word), std::string::npos) << word << " in: " << message;
}

int threads_of_this_process() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

// The threads of this process, counted once they are `expected` or after ten seconds: the kernel lists a thread that
// was joined for a moment longer.
int threads_settled_at(int expected) {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + std::chrono::seconds(10);
  while (threads_of_this_process() != expected && steady_clock::now() < end) std::this_thread::yield();
  return threads_of_this_process();
}

// The threads of this process while no engine lives. The thread sanitizer adds one of its own beside the first that a
// program starts.
int threads_without_engines() {
  std::thread([] {}).join();
  return threads_settled_at(test::under_thread_sanitizer() ? 2 : 1);
}

int sum_in_parallel(Engine& engine, int workers) {
  std::atomic<int> sum = 0;
  parallel_for(engine, 100, workers, [&](std::int64_t task, int) { sum += static_cast<int>(task); });
  return sum;
}
constexpr int kSum = 99 * 100 / 2;

TEST(EngineOptions, DefaultsAreThisMachines) {
  const ScopedVariable threads("HEADLIGHT_NUM_THREADS", nullptr), isa("HEADLIGHT_ISA", nullptr);
  const Engine engine;
  EXPECT_EQ(engine.threads(), granted_cores());
  EXPECT_EQ(engine.isa(), available_isas().back());
}

TEST(EngineOptions, OfOutsideTheirRangeAreRefused) {
  for (const int threads : {-1, 4097}) {
    expect_words(message_of([&] { Engine engine(with_threads(threads)); }),
                 {"threads", std::to_string(threads).c_str(), "4096"});
  }
  EngineOptions options = with_threads(1);
  options.spin_microseconds = -1;
  expect_words(message_of([&] { Engine engine(options); }), {"spin_microseconds", "-1", "0 or more"});
  options = with_threads(1);
  options.isa = static_cast<Isa>(200);
  expect_words(message_of([&] { Engine engine(options); }), {"isa", "unknown", "scalar"});
#if defined(__x86_64__)
  options.isa = Isa::neon;
  expect_words(message_of([&] { Engine engine(options); }), {"isa", "neon", "scalar"});
#endif
}

TEST(EngineOptions, EveryAvailableInstructionSetCanBeChosen) {
  for (const Isa isa : available_isas()) {
    EngineOptions options = with_threads(1);
    options.isa = isa;
    EXPECT_EQ(Engine(options).isa(), isa);
    const ScopedVariable variable("HEADLIGHT_ISA", std::string(name(isa)).c_str());
    EXPECT_EQ(Engine(with_threads(1)).isa(), isa);
  }
}

TEST(EngineOptions, FeaturesCanBeSwitchedOff) {
  for (const Isa isa : available_isas()) {
    EngineOptions options = with_threads(1);
    options.isa = isa;
    EXPECT_EQ(Engine(options).features(), runtime::worthwhile(runtime::cpu_features(), available_features(isa)))
        << "unset: all that pay";
    options.features = InstructionFeatures{};
    EXPECT_EQ(Engine(options).features(), InstructionFeatures{});
    options.features = available_features(isa);
    EXPECT_EQ(Engine(options).features(), available_features(isa));
  }
  EngineOptions options = with_threads(1);
  options.isa = Isa::scalar;
  options.features = InstructionFeatures{InstructionFeature::avx512_bf16};
  expect_words(message_of([&] { Engine engine(options); }), {"features", "avx512_bf16", "scalar: none"});
}

TEST(EngineOptions, NumericsAreThoseAskedForAndAllowWhatWantsThem) {
  EXPECT_EQ(Engine(with_threads(1)).numerics(), Numerics::reproducible);
  for (const Isa isa : available_isas()) {
    EngineOptions options = with_threads(1);
    options.isa = isa;
    const InstructionFeatures without = available_features(isa), with = available_features(isa, Numerics::fast);
    EXPECT_EQ(without, available_features(isa, Numerics::reproducible));
    EXPECT_TRUE(with.has(without));
    if (with != without) {
      options.features = with;
      expect_words(message_of([&] { Engine engine(options); }),
                   {"features", "numerics fast", list_of(without).c_str()});
    }
    options.features = without;
    options.numerics = Numerics::fast;
    EXPECT_EQ(Engine(options).features(), without);
    EXPECT_EQ(Engine(options).numerics(), Numerics::fast);
  }
  EngineOptions options = with_threads(1);
  options.numerics = static_cast<Numerics>(2);
  expect_words(message_of([&] { Engine engine(options); }), {"numerics", "unknown", "reproducible or fast"});
}

TEST(Environment, GivesTheThreadsUnlessTheOptionsDo) {
  const ScopedVariable variable("HEADLIGHT_NUM_THREADS", "3");
  EXPECT_EQ(Engine().threads(), 3);
  EXPECT_EQ(Engine(with_threads(2)).threads(), 2);
  const ScopedVariable empty("HEADLIGHT_NUM_THREADS", "");
  EXPECT_EQ(Engine().threads(), granted_cores());
}

TEST(Environment, BadValuesAreRefused) {
  for (const char* value : {"0", "-1", "4097", "two", "2 ", " 2", "2x", "0x2", "1.5", "99999999999999999999", "+2"}) {
    const ScopedVariable variable("HEADLIGHT_NUM_THREADS", value);
    expect_words(message_of([] { Engine engine; }), {"HEADLIGHT_NUM_THREADS", value, "1 to 4096"});
    EXPECT_EQ(Engine(with_threads(1)).threads(), 1) << "not read when the options say it";
  }
  for (const char* value : {"avx9", "avx 2", "best"}) {
    const ScopedVariable variable("HEADLIGHT_ISA", value);
    expect_words(message_of([] { Engine engine; }), {"HEADLIGHT_ISA", value, "scalar"});
  }
#if defined(__x86_64__)
  const ScopedVariable variable("HEADLIGHT_ISA", "neon");
  expect_words(message_of([] { Engine engine; }), {"HEADLIGHT_ISA", "neon", "scalar"});
#endif
}

TEST(Engine, ParallelCallsAllocateNothing) {
  Engine engine(with_threads(3));
  test::wait_for_workers(engine);
  EXPECT_EQ(sum_in_parallel(engine, 3), kSum);
  const test::AllocationCounter counter;
  int sum = 0;
  for (int call = 0; call < 100; ++call) sum += sum_in_parallel(engine, 3);
  EXPECT_EQ(counter.count(), 0);
  EXPECT_EQ(sum, 100 * kSum);
}

TEST(Engine, OfOneThreadStartsNone) {
  const int before = threads_without_engines();
  Engine engine(with_threads(1));
  EXPECT_EQ(sum_in_parallel(engine, 8), kSum);
  EXPECT_EQ(threads_of_this_process(), before);
  Engine three(with_threads(3));
  EXPECT_EQ(threads_of_this_process(), before + 2);
}

// Lets the process have memory for some threads, but not for all that are asked for.
TEST(Engine, ThatCannotStartItsThreadsLeavesNoneBehind) {
  const int threads_before = threads_without_engines();
  pthread_attr_t before, large;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  ASSERT_EQ(pthread_attr_init(&large), 0);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
  const rlimit unlimited = limit;
  if (test::under_thread_sanitizer()) {
    // Its own memory cannot be limited. No machine has a stack of 2⁴⁶ bytes: not even the first thread starts.
    ASSERT_EQ(pthread_attr_setstacksize(&large, std::size_t{1} << 46), 0);
  } else {
    constexpr rlim_t kStack = rlim_t{256} << 20;
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    ASSERT_EQ(pthread_attr_setstacksize(&large, kStack), 0);
    limit.rlim_cur = static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + 3 * kStack + kStack / 2;
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ASSERT_EQ(pthread_setattr_default_np(&large), 0);
  std::string message;
  try {
    Engine engine(with_threads(64));
  } catch (const std::system_error& error) {
    message = error.what();
  }
  const int threads_after = threads_settled_at(threads_before);
  EXPECT_EQ(pthread_setattr_default_np(&before), 0);
  EXPECT_EQ(setrlimit(RLIMIT_AS, &unlimited), 0);
  pthread_attr_destroy(&before);
  pthread_attr_destroy(&large);

  EXPECT_EQ(threads_after, threads_before);
  expect_words(message, {"cannot start worker", "of 63"});
  EXPECT_EQ(message.find("worker 1 of") != std::string::npos, test::under_thread_sanitizer()) << message;
  Engine engine(with_threads(4));
  EXPECT_EQ(sum_in_parallel(engine, 4), kSum);
}

// Runs `body` in a forked child and returns its exit code; 99 when it did not end by itself. The parent's workers must
// be up and idle: one that is still starting may hold a lock of the address sanitizer's allocator, which stays locked
// in the child for good.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a child that hangs is ended by the signal
    _exit(body());
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 99;
  return WEXITSTATUS(status);
}

TEST(Fork, TheChildsCopyComputesInlineAndEnds) {
  for (const int spin : {0, 50}) {
    EngineOptions options = with_threads(3);
    options.spin_microseconds = spin;
    std::optional<Engine> engine(std::in_place, options);
    EXPECT_EQ(sum_in_parallel(*engine, 3), kSum);
    test::wait_for_workers(*engine);
    const int code = in_child([&] {
      std::atomic<int> elsewhere = 0;
      const pthread_t self = pthread_self();
      parallel_for(*engine, 50, 3, [&](std::int64_t, int worker) {
        if (worker != 0 || pthread_equal(pthread_self(), self) == 0) ++elsewhere;
      });
      if (elsewhere != 0) return 1;
      { Scratch scratch(*engine, 10000, "a test"); }
      engine->release_scratch();
      engine.reset();
      return 0;
    });
    EXPECT_EQ(code, 0);
    EXPECT_EQ(sum_in_parallel(*engine, 3), kSum);
  }
}

TEST(Fork, TheChildMayMakeAnEngineOfItsOwn) {
  if (test::under_thread_sanitizer()) GTEST_SKIP() << "it ends a forked child that starts a thread";
  Engine engine(with_threads(2));
  EXPECT_EQ(sum_in_parallel(engine, 2), kSum);
  test::wait_for_workers(engine);
  EXPECT_EQ(in_child([] {
              Engine own(with_threads(3));
              return own.threads() == 3 && sum_in_parallel(own, 3) == kSum ? 0 : 1;
            }),
            0);
}

}  // namespace headlight::runtime::engine_test
