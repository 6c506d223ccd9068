// How fast this machine reads given memory: the yardstick of work that is bound by bytes rather than by arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "harness/crew.h"
#include "headlight/engine.h"

namespace headlight::bench {

// Sums up all of that memory, cut evenly between the threads, in the fastest of several ways that are tried first.
// Reading the very bytes that the measured work reads starts from the same caches and pages, so the two compare fairly
// whatever the levels of cache hold; a buffer of some size gives the bandwidth of a level.
class ReadMeter {
 public:
  // The memory must outlive the meter.
  ReadMeter(Isa isa, int threads, std::vector<std::span<const float>> memory);

  // GB/s (10⁹ bytes) of one pass over the memory, now; of as many as take 100 µs where it is small.
  [[nodiscard]] double burst();
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  [[nodiscard]] double pass(int way, int repeats);

  Isa isa_;
  Crew crew_;
  std::vector<std::vector<std::span<const float>>> parts_;  // for each thread
  std::int64_t bytes_ = 0;
  int way_ = 0;
  int repeats_ = 1;
};

// GB/s of reading as much memory as lies well within a level of the caches ("L1", "L2", "L3") or far beyond them all
// ("memory"): so many bursts. Empty for a level that the system does not tell of. L3 is shared, on virtual machines
// often with others unseen, so what is "beyond" it may not be.
[[nodiscard]] std::vector<double> read_bandwidth(Isa isa, int threads, std::string_view level, int bursts);

}  // namespace headlight::bench
