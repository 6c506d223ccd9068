// What this machine's fused multiply-adds can do at most: the yardstick beside every GFLOP/s that a benchmark prints.
#pragma once

#include "headlight/engine.h"

namespace headlight::bench {

// GFLOP/s (two operations a fused multiply-add, all lanes) of register-only chains on `threads` threads at once,
// measured now: the best of a few dozen bursts of about 100 µs, so that a core's clock is as high as in a short kernel.
// Only for instruction sets that available_isas() lists. On sets without the instruction (scalar, sse4) a multiply and
// an add count as one.
[[nodiscard]] double measure_fma_peak(Isa isa, int threads = 1);

// The same, measured once per instruction set and thread count in this process.
[[nodiscard]] double fma_peak(Isa isa, int threads = 1);

}  // namespace headlight::bench
