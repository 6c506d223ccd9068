// The clock of every measurement.
#pragma once

#include <chrono>

namespace headlight::bench {

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace headlight::bench
