// Limits of control groups, from files as Linux shows them.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "fl/host/ControlGroups.h"

namespace fl::host {
namespace {

namespace fs = std::filesystem;

class ControlGroupsTest : public ::testing::Test {
 protected:
  ControlGroupsTest() { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  const fs::path root_ = fs::path(::testing::TempDir()) / "groups";
};

TEST_F(ControlGroupsTest, NoGroups) {
  EXPECT_EQ(cpuQuota(root_), std::nullopt);
  EXPECT_EQ(memoryLimit(root_), std::nullopt);
  EXPECT_EQ(freeMemory(root_), std::nullopt);
}

TEST_F(ControlGroupsTest, TheLeastAroundAGroupOfVersion2) {
  write("proc/self/cgroup", "0::/pods/mine\n");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(cpuQuota(root_), std::nullopt);
  write("sys/fs/cgroup/pods/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpuQuota(root_), 1.5);
  write("sys/fs/cgroup/pods/mine/cpu.max", "400000 100000\n");
  EXPECT_EQ(cpuQuota(root_), 1.5);
  write("sys/fs/cgroup/pods/mine/cpu.max", "50000 100000\n");
  EXPECT_EQ(cpuQuota(root_), 0.5);
}

// A container sees its own group as the root.
TEST_F(ControlGroupsTest, AGroupThatIsTheRoot) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(cpuQuota(root_), 3);
}

TEST_F(ControlGroupsTest, Version1) {
  write("proc/self/cgroup", "5:memory:/mine\n4:cpu,cpuacct:/mine\n");
  write("sys/fs/cgroup/cpu/mine/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/mine/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpuQuota(root_), std::nullopt);
  write("sys/fs/cgroup/cpu/mine/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(cpuQuota(root_), 2.5);
}

// What is least may be that of one group, and what is free that of another.
TEST_F(ControlGroupsTest, MemoryOfVersion2) {
  write("proc/self/cgroup", "0::/pods/mine\n");
  write("sys/fs/cgroup/pods/memory.max", "max\n");
  write("sys/fs/cgroup/pods/memory.current", "700\n");
  EXPECT_EQ(memoryLimit(root_), std::nullopt);
  EXPECT_EQ(freeMemory(root_), std::nullopt);
  write("sys/fs/cgroup/pods/memory.max", "1000\n");
  write("sys/fs/cgroup/pods/mine/memory.max", "600\n");
  write("sys/fs/cgroup/pods/mine/memory.current", "200\n");
  EXPECT_EQ(memoryLimit(root_), 600);
  EXPECT_EQ(freeMemory(root_), 300);
  write("sys/fs/cgroup/pods/mine/memory.current", "601\n");
  EXPECT_EQ(freeMemory(root_), 0);
}

// They are dropped before the system runs short, and cannot be more than the limit.
TEST_F(ControlGroupsTest, PagesOfFilesAreFree) {
  write("proc/self/cgroup", "0::/mine\n");
  write("sys/fs/cgroup/mine/memory.max", "1000\n");
  write("sys/fs/cgroup/mine/memory.current", "900\n");
  write("sys/fs/cgroup/mine/memory.stat",
        "anon 600\nfile 300\ninactive_anon 590\ninactive_file 200\nactive_file 50\n"
        "workingset_refault_file 7\n");
  EXPECT_EQ(freeMemory(root_), 350);
  write("sys/fs/cgroup/mine/memory.current", "100\n");
  EXPECT_EQ(freeMemory(root_), 1000);
  write("proc/self/cgroup", "5:memory:/mine\n");
  write("sys/fs/cgroup/memory/mine/memory.limit_in_bytes", "1000\n");
  write("sys/fs/cgroup/memory/mine/memory.usage_in_bytes", "900\n");
  write("sys/fs/cgroup/memory/mine/memory.stat",
        "inactive_file 1\nactive_file 2\ntotal_inactive_file 30\ntotal_active_file 40\n");
  EXPECT_EQ(freeMemory(root_), 170);
}

TEST_F(ControlGroupsTest, NoMoreIsFreeThanTheMachineHas) {
  write("proc/meminfo", "MemTotal:  24684092 kB\nMemFree: 10 kB\nMemAvailable:   20 kB\n");
  EXPECT_EQ(freeMemory(root_), 20 * 1024);
  write("proc/self/cgroup", "0::/mine\n");
  write("sys/fs/cgroup/mine/memory.max", "30000\n");
  write("sys/fs/cgroup/mine/memory.current", "1000\n");
  EXPECT_EQ(freeMemory(root_), 20 * 1024);
  write("sys/fs/cgroup/mine/memory.current", "20000\n");
  EXPECT_EQ(freeMemory(root_), 10000);
}

// With what a group may still swap.
TEST_F(ControlGroupsTest, SwapIsFree) {
  write("proc/meminfo", "MemAvailable: 20 kB\nSwapTotal: 9 kB\nSwapFree: 8 kB\n");
  EXPECT_EQ(freeMemory(root_), 28 * 1024);
  write("proc/self/cgroup", "0::/mine\n");
  write("sys/fs/cgroup/mine/memory.max", "10000\n");
  write("sys/fs/cgroup/mine/memory.current", "9000\n");
  EXPECT_EQ(freeMemory(root_), 1000 + 8 * 1024);
  write("sys/fs/cgroup/mine/memory.swap.max", "700\n");
  write("sys/fs/cgroup/mine/memory.swap.current", "500\n");
  EXPECT_EQ(freeMemory(root_), 1200);
  write("sys/fs/cgroup/mine/memory.swap.current", "700\n");
  EXPECT_EQ(freeMemory(root_), 1000);
}

TEST_F(ControlGroupsTest, MemoryOfVersion1) {
  write("proc/self/cgroup", "5:memory:/mine\n4:cpu,cpuacct:/mine\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/mine/memory.limit_in_bytes", "5368709120\n");
  write("sys/fs/cgroup/memory/mine/memory.usage_in_bytes", "1073741824\n");
  EXPECT_EQ(memoryLimit(root_), 5368709120.0);
  EXPECT_EQ(freeMemory(root_), 4294967296.0);
  EXPECT_EQ(cpuQuota(root_), std::nullopt);
}

TEST_F(ControlGroupsTest, WhatIsNoQuotaIsNone) {
  write("proc/self/cgroup", "nonsense\n0::/\n");
  for (const char* text : {"", "max", "100000", "-5 100000", "100000 0"}) {
    write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(cpuQuota(root_), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace fl::host
