// What this machine and this build are, for people who report figures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headlight/export.h"
#include "headlight/number_type.h"

namespace headlight {

// The library that runs, and the machine.
struct SystemInfo {
  std::string version;   // of the library: "0.1.0"
  std::string compiler;  // that built it: "g++ 12.2.0"
  std::string cpu_name;  // as the CPU calls itself
  // Bytes of one instance of each data cache; 0 where there is none.
  std::int64_t l1_data_bytes = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t l3_bytes = 0;
  // Cores that this process may use: affinity mask and control-group quota. HEADLIGHT_NUM_THREADS does not count here.
  int cores = 1;
};

// Of this process.
[[nodiscard]] HEADLIGHT_API SystemInfo system_info();

// The types of numbers that products and attention of this build compute in, in the order of kNumberTypes: those that
// HEADLIGHT_TYPES named when it was compiled. Asked for another, they throw std::invalid_argument.
[[nodiscard]] HEADLIGHT_API std::vector<NumberType> available_types();

}  // namespace headlight
