// Waiting without sleeping, for a bounded time.
#pragma once

#include <chrono>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace headlight::runtime {

inline void relax_cpu() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");  // "yield" does nothing on most cores; isb waits about as long as x86's pause
#endif
}

// Waits until `done()` or until the time is over; returns the last answer of done(). After kAlone it lets others run
// between two looks: they may be what it waits for. That helps where there are more threads than cores, and costs
// nothing where each has its own (docs/history/runtime.md).
template <class Predicate>
bool spin_until(std::chrono::microseconds limit, Predicate&& done) noexcept {
  // Between two looks at the clock: long against a look.
  constexpr int kPausesPerLook = 32;
  constexpr std::chrono::microseconds kAlone{10};
  if (done()) return true;
  if (limit.count() <= 0) return false;
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    for (int pause = 0; pause < kPausesPerLook; ++pause) {
      relax_cpu();
      if (done()) return true;
    }
    const auto waited = std::chrono::steady_clock::now() - start;
    if (waited >= limit) return done();
    if (waited >= kAlone) std::this_thread::yield();
  }
}

}  // namespace headlight::runtime
