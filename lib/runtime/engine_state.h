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
  // Whether the CPU reads far memory fastest in the order of its addresses. (Intel's prefetchers follow so many pages
  // at once, each from line to line; rows of one head among others', a page or more apart, are new pages.)
  bool follows_memory = false;
  // Whether it reads two streams of far memory faster than one, however they are asked for. (Intel's CPUs.)
  bool reads_two_streams = false;
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
