#include "runtime/cores.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#if defined(__linux__)
#include <sched.h>

#include <cerrno>
#include <memory>
#else
#include <thread>
#endif

namespace headlight::runtime {
namespace {

int cores_in_affinity_mask() {
#if defined(__linux__)
  // The kernel refuses masks smaller than its own (EINVAL), so they grow until it is content.
  for (int cpus = 1024; cpus <= (1 << 20); cpus *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(static_cast<std::size_t>(cpus)),
                                                               [](cpu_set_t* allocated) { CPU_FREE(allocated); });
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    if (sched_getaffinity(0, bytes, set.get()) == 0) return std::max(1, CPU_COUNT_S(bytes, set.get()));
    if (errno != EINVAL) break;
  }
  return 1;
#else
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
}

bool contains(std::string_view comma_separated, std::string_view word) {
  while (!comma_separated.empty()) {
    const std::size_t comma = comma_separated.find(',');
    if (comma_separated.substr(0, comma) == word) return true;
    if (comma == std::string_view::npos) break;
    comma_separated.remove_prefix(comma + 1);
  }
  return false;
}

// Where one hierarchy of control groups is mounted, and which of its groups is seen there as "/".
struct Mount {
  std::string point;
  std::string group;
};

// From /proc/self/mountinfo: "36 35 98:0 /group /point options … - type source super-options" (proc(5)).
bool find_mount(const std::string& mountinfo, bool version2, Mount& mount) {
  std::ifstream file(mountinfo);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string skipped, type, super_options;
    words >> skipped >> skipped >> skipped >> mount.group >> mount.point;
    while (words >> skipped && skipped != "-") {
    }
    words >> type >> skipped >> super_options;
    if (version2 ? type == "cgroup2" : type == "cgroup" && contains(super_options, "cpu")) return true;
  }
  return false;
}

// quota / period in cores, or infinity.
double quota_of(const std::string& directory, bool version2) {
  double quota = -1, period = 0;
  if (version2) {
    std::ifstream(directory + "/cpu.max") >> quota >> period;  // "max 100000" leaves quota at 0 and fails
  } else {
    std::ifstream(directory + "/cpu.cfs_quota_us") >> quota;  // −1: none
    std::ifstream(directory + "/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : HUGE_VAL;
}

// The least quota from the process's group up to the root of what is mounted.
double least_quota(const std::string& root, const Mount& mount, std::string group, bool version2) {
  // In a container the mount may begin below the hierarchy's own root, at the container's group.
  if (mount.group != "/" && group.starts_with(mount.group)) group.erase(0, mount.group.size());
  double least = quota_of(root + mount.point, version2);
  while (group.size() > 1) {
    least = std::min(least, quota_of(root + mount.point + group, version2));
    group.erase(group.rfind('/'));
  }
  return least;
}

}  // namespace

int cgroup_core_limit(const std::string& root) {
  double least = HUGE_VAL;
  // Lines "0::/group" (version 2) and "3:cpu,cpuacct:/group" (version 1); see cgroups(7).
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos || second + 1 >= line.size() || line[second + 1] != '/') continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool version2 = controllers.empty();
    if (!version2 && !contains(controllers, "cpu")) continue;
    Mount mount;
    if (!find_mount(root + "/proc/self/mountinfo", version2, mount)) continue;
    least = std::min(least, least_quota(root, mount, line.substr(second + 1), version2));
  }
  return least < 1e6 ? static_cast<int>(std::ceil(least)) : 0;
}

int granted_cores() {
  const int mask = cores_in_affinity_mask();
  const int limit = cgroup_core_limit();
  return limit > 0 ? std::min(mask, limit) : mask;
}

}  // namespace headlight::runtime
