// What an Engine is made of.
#pragma once

#include <memory>
#include <optional>

#include "headlight/engine.h"
#include "runtime/cancellation.h"
#include "runtime/scratch.h"
#include "runtime/thread_pool.h"

namespace headlight::runtime {

struct EngineState {
  Isa isa = Isa::scalar;
  InstructionFeatures features;
  Numerics numerics = Numerics::reproducible;
  // Workers of a parallel call, the caller's included.
  int threads = 1;
  // Of the process that made the engine; another one is a forked child, which has none of the threads.
  int process = 0;
  ScratchPool scratch;
  // Null: calls end when they are done.
  CancellationCheck cancellation_check = nullptr;
  // At most one of the two; neither when threads is 1.
  std::optional<Executor> executor;
  std::unique_ptr<ThreadPool> pool;
};

}  // namespace headlight::runtime
