#include "interruptible.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace headlight::python {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks for signals, for which the GIL is needed.
constexpr std::chrono::milliseconds kBetweenLooks{20};

// Beside a busy thread of Python the GIL comes after milliseconds: looks may take a twentieth of the time.
constexpr int kBetweenWaits = 19;

// Of the call that this thread is in.
thread_local bool raised = false;
thread_local Clock::time_point next_look;
// Within a look, where handlers of signals may call the engine: such a call runs to its end.
thread_local bool is_looking = false;

}  // namespace

Interruptible::Interruptible() noexcept {
  raised = false;
  next_look = Clock::now() + kBetweenLooks;
}

void Interruptible::end() const {
  if (!raised) return;
  raised = false;
  throw nb::python_error();
}

bool is_interrupted() noexcept {
  if (raised) return true;
  if (is_looking) return false;
  const Clock::time_point now = Clock::now();
  if (now < next_look) return false;
  next_look = now + kBetweenLooks;
  // In any other thread of the process there is nothing to see, and who takes the GIL as Python ends never comes back.
  if (gettid() != getpid()) return false;
  is_looking = true;
  {
    const nb::gil_scoped_acquire held;
    const Clock::time_point taken = Clock::now();
    next_look = taken + std::max<Clock::duration>(kBetweenLooks, kBetweenWaits * (taken - now));
    raised = PyErr_CheckSignals() != 0;
  }
  is_looking = false;
  return raised;
}

}  // namespace headlight::python
