// Reduced sizes: with HEADLIGHT_TEST_QUICK set, to whatever it is, tests take fewer and smaller cases and leave a few
// out. tools/test, .ci/run and the presets of sanitizers set it.
#pragma once

#include <cstdlib>
#include <vector>

namespace headlight::test {

[[nodiscard]] inline bool quick() { return std::getenv("HEADLIGHT_TEST_QUICK") != nullptr; }

// How many random cases, or which largest size.
template <class Count>
[[nodiscard]] Count count(Count normally, Count when_quick) {
  return quick() ? when_quick : normally;
}

// Numbers of threads with which a call must give the bits that it gives on one.
[[nodiscard]] inline std::vector<int> more_threads() { return quick() ? std::vector{2, 5} : std::vector{2, 3, 5, 8}; }

}  // namespace headlight::test
