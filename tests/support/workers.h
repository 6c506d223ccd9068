// Engines whose workers are up and running.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "headlight/engine.h"
#include "runtime/parallel.h"

namespace headlight::test {

// Returns when every worker has run something: under the sanitizers a thread that is still starting allocates on its
// own account, so whoever counts allocations or forks waits first.
inline void wait_for_workers(Engine& engine) {
  std::atomic<int> arrived = 0;
  const int threads = engine.threads();
  runtime::parallel_for(engine, threads, threads, [&](std::int64_t, int) {
    ++arrived;
    while (arrived < threads) std::this_thread::yield();
  });
}

}  // namespace headlight::test
