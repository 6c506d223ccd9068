// How many cores the system lets this process use.
#pragma once

#include <string>

namespace headlight::runtime {

// The smaller of the affinity mask's size and the CPU quota of the control groups, rounded up; at least 1.
[[nodiscard]] int granted_cores();

// Cores by the quota of the control groups (version 1 or 2) that this process is in, and of those around them, rounded
// up; 0 when there is no limit or nothing can be read. `root` stands before /proc and every mount point, for tests.
[[nodiscard]] int cgroup_core_limit(const std::string& root = "");

}  // namespace headlight::runtime
