// How a call computes: without the GIL, and ended by Ctrl-C. The one place that knows of either.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace nb = nanobind;

namespace headlight::python {

// What engines of Python ask as they compute (runtime/cancellation.h): whether a handler of signals has raised
// something in the call that this thread is in. They run in Python's main thread alone, and meanwhile here.
[[nodiscard]] bool is_interrupted() noexcept;

// This thread's call, from here until its end.
class Interruptible {
 public:
  Interruptible() noexcept;
  // With the GIL: throws what a handler of signals raised (KeyboardInterrupt).
  void end() const;
};

// call() without the GIL. Throws what it throws, and whatever a handler of signals raises meanwhile: what an engine
// was computing is then left unfinished within milliseconds, and its results hold anything.
template <class Call>
void compute(const Call& call) {
  const Interruptible interruptible;
  try {
    const nb::gil_scoped_release released;
    call();
  } catch (...) {
    interruptible.end();
    throw;
  }
  interruptible.end();
}

// The work of a call that asks nobody as it computes, or says how far it is: items (texts) that may be taken apart,
// with the same bits.
struct Work {
  std::int64_t items = 1;
  // Of all of them, an estimate: what takes less than a few milliseconds on any machine is not cut.
  double operations = 0;
};

// visit(first, count), without the GIL, for ranges that cover the items in ascending order; after each, with the GIL,
// report(items done). Throws what they throw, and what handlers of signals raise: nothing more is computed then.
template <class Visit, class Report>
void compute_in_slices(const Work& work, const Visit& visit, const Report& report) {
  constexpr double kFirstOperations = 2e8, kSecondsOfSlice = 0.04;
  using Clock = std::chrono::steady_clock;
  double wanted = static_cast<double>(work.items);
  if (work.operations > 2 * kFirstOperations) wanted *= kFirstOperations / work.operations;
  for (std::int64_t first = 0; first < work.items || first == 0;) {
    const auto count = std::min(static_cast<std::int64_t>(std::max(1.0, wanted)), work.items - first);
    double seconds = 0;  // of visit() alone: what others do with the GIL makes no slice smaller
    compute([&] {
      const Clock::time_point begin = Clock::now();
      visit(first, count);
      seconds = std::max(1e-6, std::chrono::duration<double>(Clock::now() - begin).count());
    });
    first += count;
    report(first);
    if (first >= work.items) return;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    wanted = static_cast<double>(count) * std::clamp(kSecondsOfSlice / seconds, 0.25, 4.0);
  }
}

}  // namespace headlight::python
