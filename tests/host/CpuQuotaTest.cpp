// Quotas of control groups, from files as Linux shows them.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "fl/host/CpuQuota.h"

namespace fl::host {
namespace {

namespace fs = std::filesystem;

class CpuQuotaTest : public ::testing::Test {
 protected:
  CpuQuotaTest() { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  const fs::path root_ = fs::path(::testing::TempDir()) / "groups";
};

TEST_F(CpuQuotaTest, NoGroups) { EXPECT_EQ(cpuQuota(root_), std::nullopt); }

TEST_F(CpuQuotaTest, TheLeastAroundAGroupOfVersion2) {
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
TEST_F(CpuQuotaTest, AGroupThatIsTheRoot) {
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(cpuQuota(root_), 3);
}

TEST_F(CpuQuotaTest, Version1) {
  write("proc/self/cgroup", "5:memory:/mine\n4:cpu,cpuacct:/mine\n");
  write("sys/fs/cgroup/cpu/mine/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/mine/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpuQuota(root_), std::nullopt);
  write("sys/fs/cgroup/cpu/mine/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(cpuQuota(root_), 2.5);
}

TEST_F(CpuQuotaTest, WhatIsNoQuotaIsNone) {
  write("proc/self/cgroup", "nonsense\n0::/\n");
  for (const char* text : {"", "max", "100000", "-5 100000", "100000 0"}) {
    write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(cpuQuota(root_), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace fl::host
