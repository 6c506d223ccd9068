// How a call computes: without the GIL, and where it takes long, in slices between which Python looks for signals, so
// that Ctrl-C ends it. The one place that knows of either.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace nb = nanobind;

namespace headlight::python {

// The work of a call whose items (rows, samples, texts) may be computed apart, with the same bits.
struct Work {
  std::int64_t items = 1;
  // Of all of them, an estimate: what takes less than a few milliseconds on any machine is not cut.
  double operations = 0;
  // A slice holds a multiple of so many, but for the last.
  std::int64_t together = 1;
};

// Operations of a first slice, and whether so many are too many for one.
inline constexpr double kFirstOperations = 2e8;
inline constexpr bool is_long(double operations) noexcept { return operations > 2 * kFirstOperations; }

// step(first, count), without the GIL, for ranges that cover the items in ascending order; after each, with the GIL,
// report(items done). Throws what they throw, and whatever a handler of signals raises (KeyboardInterrupt): nothing
// more is computed then.
template <class Step, class Report>
void compute(const Work& work, const Step& step, const Report& report) {
  constexpr double kSecondsOfSlice = 0.04;
  using Clock = std::chrono::steady_clock;
  const auto whole_groups = [&](double items) {
    const auto groups = static_cast<std::int64_t>(std::max(1.0, items / static_cast<double>(work.together)));
    return groups * work.together;
  };
  double wanted = static_cast<double>(work.items);
  if (is_long(work.operations)) wanted *= kFirstOperations / work.operations;
  for (std::int64_t first = 0; first < work.items || first == 0;) {
    const std::int64_t count = std::min(whole_groups(wanted), work.items - first);
    double seconds = 0;  // of the step alone: what others do with the GIL makes no slice smaller
    {
      const nb::gil_scoped_release released;
      const Clock::time_point begin = Clock::now();
      step(first, count);
      seconds = std::max(1e-6, std::chrono::duration<double>(Clock::now() - begin).count());
    }
    first += count;
    report(first);
    if (first >= work.items) return;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    wanted = static_cast<double>(count) * std::clamp(kSecondsOfSlice / seconds, 0.25, 4.0);
  }
}

template <class Step>
void compute(const Work& work, const Step& step) {
  compute(work, step, [](std::int64_t) {});
}

}  // namespace headlight::python
