#include "harness/fma_peak.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "harness/clock.h"
#include "runtime/isa_list.h"

#define HEADLIGHT_DECLARE(isa)     \
  namespace headlight::isa {       \
  extern const FmaBurst fma_burst; \
  }
HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_DECLARE)
HEADLIGHT_FOR_EACH_FEATURE(HEADLIGHT_DECLARE)
#undef HEADLIGHT_DECLARE

namespace headlight::bench {
namespace {

const FmaBurst& burst_of(const Engine& engine, NumberType type) {
#define HEADLIGHT_CASE(name) \
  if (engine.features().has(InstructionFeature::name)) return headlight::name::fma_burst;
  if (type == NumberType::bfloat16) {
    HEADLIGHT_FOR_EACH_BFLOAT16_TILES_FEATURE(HEADLIGHT_CASE)
    HEADLIGHT_FOR_EACH_BFLOAT16_PRODUCTS_FEATURE(HEADLIGHT_CASE)
    HEADLIGHT_FOR_EACH_BFLOAT16_FEATURE(HEADLIGHT_CASE)
  }
  if (type == NumberType::int8) {
    HEADLIGHT_FOR_EACH_INT8_PRODUCTS_FEATURE(HEADLIGHT_CASE)
    HEADLIGHT_FOR_EACH_INT8_FEATURE(HEADLIGHT_CASE)
  }
#undef HEADLIGHT_CASE
  switch (engine.isa()) {
#define HEADLIGHT_CASE(name) \
  case Isa::name:            \
    return headlight::name::fma_burst;
    HEADLIGHT_FOR_EACH_ISA(HEADLIGHT_CASE)
#undef HEADLIGHT_CASE
    default:
      break;
  }
  __builtin_unreachable();
}

}  // namespace

FmaMeter::FmaMeter(const Engine& engine, NumberType type) : burst_(burst_of(engine, type)), crew_(engine.threads()) {}

double FmaMeter::burst() {
  // The four fastest of five pieces: an interruption does not pass for a slow clock, and yet it is the
  // clock of the whole time that counts, as it does for the work beside it.
  constexpr std::size_t kPieces = 5;
  volatile float one = 1.0f;  // hides the value from the compiler
  volatile float small = 0x1p-20f;
  std::vector<double> rates(static_cast<std::size_t>(crew_.threads()));
  crew_.run([&](int thread) {
    double all = 0;
    double slowest = 0;
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      float result = 0;
      const auto start = Clock::now();
      burst_.run(burst_.steps, one, small, &result);
      const double seconds = seconds_since(start);
      volatile float sink = result;
      static_cast<void>(sink);
      all += seconds;
      slowest = std::max(slowest, seconds);
    }
    const double operations = 2.0 * burst_.products * burst_.chains * static_cast<double>(burst_.steps * (kPieces - 1));
    rates[static_cast<std::size_t>(thread)] = operations / (all - slowest);
  });
  return std::accumulate(rates.begin(), rates.end(), 0.0) * 1e-9;
}

}  // namespace headlight::bench
