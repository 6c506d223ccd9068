#include "interruptible.h"

#include <unistd.h>

#include <chrono>

namespace headlight::python {
namespace {

using Clock = std::chrono::steady_clock;

// Between two looks for signals, for which the GIL is needed.
constexpr std::chrono::milliseconds kBetweenLooks{20};

// Of the call that this thread is in.
thread_local bool raised = false;
thread_local Clock::time_point looked;

}  // namespace

Interruptible::Interruptible() noexcept {
  raised = false;
  looked = Clock::now();
}

void Interruptible::end() const {
  if (!raised) return;
  raised = false;
  throw nb::python_error();
}

bool is_interrupted() noexcept {
  if (raised) return true;
  const Clock::time_point now = Clock::now();
  if (now - looked < kBetweenLooks) return false;
  looked = now;
  // In any other thread of the process there is nothing to see, and who takes the GIL as Python ends never comes back.
  if (gettid() != getpid()) return false;
  const nb::gil_scoped_acquire held;
  raised = PyErr_CheckSignals() != 0;
  return raised;
}

}  // namespace headlight::python
