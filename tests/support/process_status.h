// What the system tells of the memory of this process.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace headlight::test {

// Bytes of that line of /proc/self/status, from proc(5): "VmRSS", resident now, "VmHWM", the most that ever was, or
// "VmData", private; 0 where it is not told.
[[nodiscard]] inline std::int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kibibytes = 0;
    if (word == name + ":" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

}  // namespace headlight::test
