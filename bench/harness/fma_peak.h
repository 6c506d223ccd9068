// What this machine's fused multiply-adds can do at most: the yardstick beside every GFLOP/s that a benchmark prints.
#pragma once

#include "harness/crew.h"
#include "headlight/engine.h"

namespace headlight::bench {

// The clock of a core moves by tenths within seconds, and of a virtual one without a word. So the peak is taken in
// short bursts just before and after the work that it is held against, never once and for all.
class FmaMeter {
 public:
  // Only for instruction sets that available_isas() lists.
  FmaMeter(Isa isa, int threads) : isa_(isa), crew_(threads) {}

  // GFLOP/s (two operations a fused multiply-add, all lanes) of register-only chains on all threads at once, now; about
  // a tenth of a millisecond. On sets without the instruction (scalar, sse4) a multiply and an add count as one.
  [[nodiscard]] double burst();

 private:
  Isa isa_;
  Crew crew_;
};

}  // namespace headlight::bench
