// What everybody else on this machine does meanwhile: a figure taken beside a busy neighbour should say so.
#pragma once

#include "harness/clock.h"

namespace headlight::bench {

class OtherLoad {
 public:
  OtherLoad() : start_(Clock::now()), others_at_start_(others()) {}

  // The share of all cores' time that was not idle and not this process's own, since this was made, in steps of 10 ms;
  // what a hypervisor took away counts too. 0 where /proc/stat cannot be read.
  [[nodiscard]] double share() const;

 private:
  // Seconds of processor time since the machine started, less ours.
  [[nodiscard]] static double others();

  Clock::time_point start_;
  double others_at_start_;
};

}  // namespace headlight::bench
