// soak SECONDS [THREADS]: a mix of calls from many threads over several engines, one of which borrows the caller's
// pool, with forks in between. Every result has the bits of a first run alone, memory does not grow, and nobody stands
// still. Ends with 1, or by abort() where nobody gets on, after it has said what was wrong.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <thread>

#include "soak/call.h"
#include "support/queue_pool.h"
#include "support/quick.h"
#include "support/random.h"
#include "support/sanitizer.h"

namespace headlight::soak {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

// Forks of a process that a sanitizer watches may find its own locks held.
const bool kForks = !test::under_sanitizer();
const int kCallsARound = test::count(100, 10);
constexpr int kForksARound = 3;
constexpr int kLeastRounds = 6;
constexpr seconds kPatience{300};

// Without what the allocator keeps for later.
std::int64_t resident_bytes() {
  ::malloc_trim(0);
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

// Of memory that was allocated and not freed; 0 under the address sanitizer, which keeps its own books.
std::int64_t live_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<std::int64_t>(info.uordblks + info.hblkhd);
}

class Soak {
 public:
  explicit Soak(int threads) : threads_(threads) {
    add_engine_calls(calls_);
#ifdef HEADLIGHT_SOAK_MODELS
    add_model_calls(calls_);
#endif
    const Executor executor = pool_.executor();
    engines_.emplace_back(EngineOptions{.threads = 3});
    engines_.emplace_back(EngineOptions{.threads = 2, .spin_microseconds = 0});
    engines_.emplace_back(EngineOptions{.threads = 1});
    engines_.emplace_back(EngineOptions{.executor = &executor});
    Engine alone({.threads = 1});
    for (const auto& call : calls_) expected_.push_back(call->run(alone));
  }

  bool run(seconds duration) {
    std::atomic<bool> ended = false;
    std::thread watchdog([&] { watch(ended); });
    const auto end = steady_clock::now() + duration;
    std::vector<std::int64_t> live;
    std::int64_t resident_before = 0;
    for (int round = 0; round < kLeastRounds || steady_clock::now() < end; ++round) {
      run_round(static_cast<std::uint64_t>(round));
      live.push_back(live_bytes());
      if (round == kLeastRounds / 2) resident_before = resident_bytes();
    }
    ended = true;
    watchdog.join();
    return report(live, resident_before);
  }

 private:
  void run_round(std::uint64_t round) {
    std::vector<std::thread> callers;
    for (int caller = 0; caller < threads_; ++caller)
      callers.emplace_back([=, this] { make_calls(round * 1000 + static_cast<std::uint64_t>(caller)); });
    for (int n = 0; kForks && n < kForksARound; ++n) fork_once(round * 1000 + 900 + static_cast<std::uint64_t>(n));
    for (std::thread& caller : callers) caller.join();
    for (Engine& engine : engines_) engine.release_scratch();
  }

  void make_calls(std::uint64_t seed) {
    test::Random random(seed);
    for (int n = 0; n < kCallsARound; ++n) {
      const auto number = static_cast<std::size_t>(random.integer(0, std::ssize(calls_) - 1));
      Engine& engine = engines_[static_cast<std::size_t>(random.integer(0, std::ssize(engines_) - 1))];
      if (calls_[number]->run(engine) != expected_[number]) ++wrong_;
      ++made_;
    }
  }

  // A child that is forked while others compute gets the same bits, on its copy of an engine and on one of its own.
  void fork_once(std::uint64_t seed) {
    test::Random random(seed);
    const auto number = static_cast<std::size_t>(random.integer(0, std::ssize(calls_) - 1));
    if (!calls_[number]->may_follow_fork()) return;
    Engine& engine = engines_[static_cast<std::size_t>(random.integer(0, 2))];
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(static_cast<unsigned>(kPatience.count()));
      Engine own({.threads = 2});
      const bool right =
          calls_[number]->run(engine) == expected_[number] && calls_[number]->run(own) == expected_[number];
      ::_exit(right ? 0 : 1);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) ++wrong_children_;
    ++forked_;
  }

  void watch(const std::atomic<bool>& ended) const {
    std::int64_t seen = -1;
    auto last = steady_clock::now();
    while (!ended) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const std::int64_t made = made_ + forked_;
      if (made != seen) last = steady_clock::now();
      seen = made;
      if (steady_clock::now() - last < kPatience) continue;
      std::fprintf(stderr, "soak: no call has ended for %lld s\n", static_cast<long long>(kPatience.count()));
      std::abort();
    }
  }

  // Memory may be more in one round than in the next, by what callers kept at the same time; it does not rise.
  bool report(const std::vector<std::int64_t>& live, std::int64_t resident_before) const {
    constexpr std::int64_t kSlack = std::int64_t{1} << 20, kResidentSlack = std::int64_t{64} << 20;
    const auto middle = live.begin() + std::ssize(live) / 2;
    const std::int64_t before = *std::max_element(live.begin(), middle), after = *std::max_element(middle, live.end());
    const std::int64_t resident_after = resident_bytes();
    const bool grows =
        after > before + kSlack || (!test::under_sanitizer() && resident_after > resident_before + kResidentSlack);
    std::printf("%lld calls and %lld forks in %zu rounds; most bytes live %lld, then %lld; resident %lld, then %lld\n",
                static_cast<long long>(made_), static_cast<long long>(forked_), live.size(),
                static_cast<long long>(before), static_cast<long long>(after), static_cast<long long>(resident_before),
                static_cast<long long>(resident_after));
    if (wrong_ > 0) std::fprintf(stderr, "soak: %lld calls gave other bits\n", static_cast<long long>(wrong_));
    if (wrong_children_ > 0)
      std::fprintf(stderr, "soak: %lld children failed\n", static_cast<long long>(wrong_children_));
    if (grows) std::fprintf(stderr, "soak: memory grows\n");
    return wrong_ == 0 && wrong_children_ == 0 && !grows;
  }

  int threads_;
  test::QueuePool pool_{2};
  std::deque<Engine> engines_;
  Calls calls_;
  std::vector<std::uint64_t> expected_;
  std::atomic<std::int64_t> made_ = 0, wrong_ = 0, forked_ = 0, wrong_children_ = 0;
};

}  // namespace
}  // namespace headlight::soak

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: soak SECONDS [THREADS]\n");
    return 2;
  }
  const int threads = count > 2 ? std::max(1, std::atoi(arguments[2])) : 4;
  return headlight::soak::Soak(threads).run(std::chrono::seconds(std::atoll(arguments[1]))) ? 0 : 1;
}
