// What of the process's memory is resident, from proc(5).
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

namespace headlight::program {

// Bytes of that line of /proc/self/status: "VmRSS", now, or "VmHWM", the most there ever were; nothing without the
// line.
[[nodiscard]] inline std::optional<std::int64_t> resident_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    long long kibibytes = 0;
    if (line.starts_with(name) && std::sscanf(line.c_str() + name.size(), ": %lld kB", &kibibytes) == 1)
      return kibibytes * 1024;
  }
  return std::nullopt;
}

}  // namespace headlight::program
