// Cores and caches, read from file trees made up for the purpose, and from this machine.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "headlight/system.h"
#include "runtime/caches.h"
#include "runtime/cores.h"

namespace headlight::runtime::machine_test {

class FakeRoot : public ::testing::Test {
 protected:
  FakeRoot() {
    std::string pattern = (std::filesystem::temp_directory_path() / "headlight-root-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    root_ = pattern;
  }
  ~FakeRoot() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + file).parent_path());
    std::ofstream(root_ + file) << text;
  }

  void mount_version2(const std::string& group = "/") {
    write("/proc/self/mountinfo",
          "22 27 0:21 / /proc rw,nosuid shared:12 - proc proc rw\n"
          "30 23 0:26 " +
              group + " /sys/fs/cgroup rw,nosuid shared:4 master:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }

  std::string root_;
};

TEST_F(FakeRoot, NoControlGroupsMeanNoLimit) {
  EXPECT_EQ(cgroup_core_limit(root_), 0);
  write("/proc/self/cgroup", "0::/a\n");
  EXPECT_EQ(cgroup_core_limit(root_), 0);
}

TEST_F(FakeRoot, Version2QuotaIsRoundedUp) {
  mount_version2();
  write("/proc/self/cgroup", "0::/user.slice/job\n");
  EXPECT_EQ(cgroup_core_limit(root_), 0);
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_core_limit(root_), 0);
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "250000 100000\n");
  EXPECT_EQ(cgroup_core_limit(root_), 3);
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "10000 100000\n");
  EXPECT_EQ(cgroup_core_limit(root_), 1);
}

TEST_F(FakeRoot, Version2TakesTheLeastQuotaOnTheWayUp) {
  mount_version2();
  write("/proc/self/cgroup", "0::/user.slice/job\n");
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "800000 100000\n");
  write("/sys/fs/cgroup/user.slice/cpu.max", "200000 100000\n");
  EXPECT_EQ(cgroup_core_limit(root_), 2);
  write("/sys/fs/cgroup/cpu.max", "50000 50000\n");
  EXPECT_EQ(cgroup_core_limit(root_), 1);
}

TEST_F(FakeRoot, Version2InAContainerThatSeesItsOwnGroupAsTheRoot) {
  write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  mount_version2();
  write("/proc/self/cgroup", "0::/\n");  // with a control-group namespace
  EXPECT_EQ(cgroup_core_limit(root_), 4);
  mount_version2("/docker/1234");
  write("/proc/self/cgroup", "0::/docker/1234\n");  // without one
  EXPECT_EQ(cgroup_core_limit(root_), 4);
  write("/sys/fs/cgroup/inner/cpu.max", "300000 100000\n");
  write("/proc/self/cgroup", "0::/docker/1234/inner\n");
  EXPECT_EQ(cgroup_core_limit(root_), 3);
}

TEST_F(FakeRoot, Version1Quota) {
  write("/proc/self/mountinfo",
        "33 32 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "34 32 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:18 - cgroup cgroup rw,cpu,cpuacct\n");
  write("/proc/self/cgroup", "5:cpuset:/other\n4:cpu,cpuacct:/job\n1:name=systemd:/\n");
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_core_limit(root_), 0);
  write("/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(cgroup_core_limit(root_), 2);
}

TEST_F(FakeRoot, NonsenseMeansNoLimit) {
  mount_version2();
  write("/proc/self/cgroup", "\n:\n0\n0:\n0::\n0::job\n0::/a\n");
  for (const char* text : {"", "x y", "100000", "100000 0", "-5 100000", "0 100000", "100000 -1"}) {
    write("/sys/fs/cgroup/a/cpu.max", text);
    EXPECT_EQ(cgroup_core_limit(root_), 0) << text;
  }
}

TEST_F(FakeRoot, Caches) {
  EXPECT_EQ(read_cache_sizes(root_).l1_data, 0);
  const auto add = [this](const std::string& index, const std::string& level, const std::string& type,
                          const std::string& size) {
    write("/index" + index + "/level", level + "\n");
    write("/index" + index + "/type", type + "\n");
    write("/index" + index + "/size", size + "\n");
  };
  add("0", "1", "Data", "48K");
  add("1", "1", "Instruction", "32K");
  add("2", "2", "Unified", "2M");
  add("3", "3", "Unified", "32768K");
  const CacheSizes sizes = read_cache_sizes(root_);
  EXPECT_EQ(sizes.l1_data, 48 << 10);
  EXPECT_EQ(sizes.l2, 2 << 20);
  EXPECT_EQ(sizes.l3, 32 << 20);
  add("2", "2", "Unified", "nonsense");
  EXPECT_EQ(read_cache_sizes(root_).l2, 0);
}

TEST(Machine, CachesAreKnownOrAssumed) {
  const CacheSizes sizes = cache_sizes();
  EXPECT_GE(sizes.l1_data, 4 << 10);
  EXPECT_LE(sizes.l1_data, 1 << 20);
  EXPECT_GT(sizes.l2, sizes.l1_data);
  EXPECT_GE(sizes.l3, 0);
}

TEST(Machine, AnAffinityMaskLowersTheCores) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  const int cores = granted_cores();
  EXPECT_GE(cores, 1);
  EXPECT_LE(cores, CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  const int left = granted_cores();
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(left, 1);
}

TEST(Machine, SystemInfoIsFilledIn) {
  const SystemInfo info = system_info();
  EXPECT_EQ(std::count(info.version.begin(), info.version.end(), '.'), 2);
  EXPECT_NE(info.compiler.find("++ "), std::string::npos);
  EXPECT_FALSE(info.cpu_name.empty());
  EXPECT_GT(info.l1_data_bytes, 0);
  EXPECT_GT(info.l2_bytes, 0);
  EXPECT_EQ(info.cores, granted_cores());
}

}  // namespace headlight::runtime::machine_test
