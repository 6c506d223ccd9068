// Sanitizer builds run several times slower: with HEADLIGHT_TEST_QUICK set, tests take fewer and smaller cases.
#pragma once

#include <cstdlib>

namespace headlight::test {

[[nodiscard]] inline bool quick() { return std::getenv("HEADLIGHT_TEST_QUICK") != nullptr; }

// How many random cases, or which largest size.
template <class Count>
[[nodiscard]] Count count(Count normally, Count when_quick) {
  return quick() ? when_quick : normally;
}

}  // namespace headlight::test
