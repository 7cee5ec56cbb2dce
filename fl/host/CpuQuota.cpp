#include "fl/host/CpuQuota.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace fl::host {
namespace {

namespace fs = std::filesystem;

using Quota = std::optional<double>;

Quota quotient(double time, double period) {
  return time > 0 && period > 0 ? Quota(time / period) : std::nullopt;
}

// Version 2: "max 100000" or "50000 100000", microseconds of each period.
Quota limitOfUnified(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  double time, period;
  return file >> time >> period ? quotient(time, period) : std::nullopt;
}

// Version 1: -1 for no limit.
Quota limitOfController(const fs::path& group) {
  std::ifstream times(group / "cpu.cfs_quota_us"), periods(group / "cpu.cfs_period_us");
  double time, period;
  return times >> time && periods >> period ? quotient(time, period) : std::nullopt;
}

// The least limit of `group` and those around it, up to `top`.
template <typename Limit>
Quota leastAround(const fs::path& top, const std::string& group, Limit&& limit) {
  Quota least;
  for (fs::path path = fs::path(group).relative_path();; path = path.parent_path()) {
    if (const Quota own = limit(top / path)) {
      least = std::min(own.value(), least.value_or(own.value()));
    }
    if (path.empty()) return least;
  }
}

bool names(const std::string& controllers, const std::string& name) {
  return ("," + controllers + ",").find("," + name + ",") != std::string::npos;
}

}  // namespace

// A line of /proc/self/cgroup is "number:controllers:/group", without controllers in version 2.
std::optional<double> cpuQuota(const fs::path& root) {
  const fs::path groups = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  Quota least;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    const Quota quota = controllers.empty() ? leastAround(groups, group, limitOfUnified)
                        : names(controllers, "cpu")
                            ? leastAround(groups / "cpu", group, limitOfController)
                            : std::nullopt;
    if (quota) least = std::min(*quota, least.value_or(*quota));
  }
  return least;
}

}  // namespace fl::host
