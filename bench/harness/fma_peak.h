// What this machine's fused multiply-adds can do at most: the yardstick beside every GFLOP/s that a benchmark prints.
#pragma once

#include "harness/crew.h"
#include "harness/fma_peak_kernel.h"
#include "headlight/engine.h"
#include "headlight/number_type.h"

namespace headlight::bench {

// The clock of a core moves by tenths within seconds, and of a virtual one without a word. So the peak is taken in
// short bursts just before and after the work that it is held against, never once and for all.
class FmaMeter {
 public:
  // Of products of numbers of that type, with the engine's instructions on its number of threads.
  explicit FmaMeter(const Engine& engine, NumberType type = NumberType::float32);

  // GFLOP/s (two operations a fused multiply-add, all lanes) of register-only chains on all threads at once, now; about
  // a tenth of a millisecond. On sets without the instruction (scalar, sse4) a multiply and an add count as one;
  // held against
  // multiply-adds of float32, too, are numbers that no instruction multiplies as they are.
  [[nodiscard]] double burst();

 private:
  const FmaBurst& burst_;
  Crew crew_;
};

}  // namespace headlight::bench
