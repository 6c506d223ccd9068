#include "support/fma_peak.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/isa_list.h"
#include "support/fma_peak_kernel.h"

#define HEADLIGHT_DECLARE(isa)     \
  namespace headlight::isa {       \
  extern const FmaBurst fma_burst; \
  }
HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_DECLARE)
#undef HEADLIGHT_DECLARE

namespace headlight::bench {
namespace {

const FmaBurst& burst_of(Isa isa) {
  switch (isa) {
#define HEADLIGHT_CASE(name) \
  case Isa::name:            \
    return headlight::name::fma_burst;
    HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_CASE)
#undef HEADLIGHT_CASE
    default:
      break;
  }
  __builtin_unreachable();
}

constexpr int kBursts = 40;

}  // namespace

double measure_fma_peak(Isa isa, int threads) {
  using Clock = std::chrono::steady_clock;
  const FmaBurst& burst = burst_of(isa);
  volatile float one = 1.0f;  // hides the value from the compiler
  volatile float small = 0x1p-20f;
  constexpr std::int64_t kSteps = 40'000;  // ~ 60–120 µs at 4 GHz with six to twelve cycles a step

  // All threads start a burst together; it ends with the last of them.
  std::vector<double> seconds(static_cast<std::size_t>(threads));
  double best = 0.0;
  const auto take_best = [&]() noexcept {
    const double slowest = *std::max_element(seconds.begin(), seconds.end());
    const double operations = 2.0 * burst.lanes * burst.chains * static_cast<double>(kSteps) * threads;
    if (slowest > 0) best = std::max(best, operations / slowest * 1e-9);
  };
  std::barrier barrier(threads, take_best);
  const auto work = [&](int thread) {
    double& mine = seconds[static_cast<std::size_t>(thread)];
    mine = 0;
    for (int repeat = 0; repeat <= kBursts; ++repeat) {
      barrier.arrive_and_wait();
      float result = 0;
      const auto start = Clock::now();
      burst.run(kSteps, one, small, &result);
      mine = std::chrono::duration<double>(Clock::now() - start).count();
      volatile float sink = result;
      static_cast<void>(sink);
    }
    barrier.arrive_and_wait();
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
  return best;
}

double fma_peak(Isa isa, int threads) {
  static std::map<std::pair<Isa, int>, double> known;
  double& peak = known[{isa, threads}];
  if (peak == 0.0) peak = measure_fma_peak(isa, threads);
  return peak;
}

}  // namespace headlight::bench
