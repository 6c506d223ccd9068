// Tasks over the engine's workers that may fail.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "runtime/parallel.h"

namespace headlight::runtime {

// parallel_for() whose tasks may throw, for want of memory above all. After the first failure no further task begins;
// once those at work have ended, its exception goes on to the caller, with the name of whoever asked for memory.
template <class Function>
void parallel_for_or_throw(Engine& engine, std::int64_t count, int workers, Function&& function,
                           HandOut hand_out = HandOut::in_shares) {
  std::atomic<bool> failed = false;
  std::exception_ptr failure;
  auto task = [&](std::int64_t number, int worker) noexcept {
    if (failed.load(std::memory_order_relaxed)) return;
    try {
      function(number, worker);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  };
  parallel_for(engine, count, workers, task, hand_out);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace headlight::runtime
