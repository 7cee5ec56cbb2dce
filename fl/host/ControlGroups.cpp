#include "fl/host/ControlGroups.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace fl::host {
namespace {

namespace fs = std::filesystem;

using Limit = std::optional<double>;

// The number that a file begins with; nothing for "max".
Limit numberIn(const fs::path& file) {
  double number;
  return std::ifstream(file) >> number ? Limit(number) : std::nullopt;
}

Limit quotient(double time, double period) {
  return time > 0 && period > 0 ? Limit(time / period) : std::nullopt;
}

// "max 100000" or "50000 100000", microseconds of each period.
Limit quotaOfUnified(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  double time, period;
  return file >> time >> period ? quotient(time, period) : std::nullopt;
}

// -1 for no limit.
Limit quotaOfController(const fs::path& group) {
  return quotient(numberIn(group / "cpu.cfs_quota_us").value_or(-1),
                  numberIn(group / "cpu.cfs_period_us").value_or(-1));
}

// Reads a limit, without what another file says is used of it.
auto limitIn(const char* file, const char* used = "") {
  return [=](const fs::path& group) -> Limit {
    const Limit limit = numberIn(group / file);
    return limit ? std::max(*limit - numberIn(group / used).value_or(0), 0.0) : limit;
  };
}

// The least limit of `group` and those around it, up to `top`.
template <typename Read>
Limit leastAround(const fs::path& top, const std::string& group, Read&& read) {
  Limit least;
  for (fs::path path = fs::path(group).relative_path();; path = path.parent_path()) {
    if (const Limit own = read(top / path)) least = std::min(*own, least.value_or(*own));
    if (path.empty()) return least;
  }
}

bool names(const std::string& controllers, const std::string& name) {
  return ("," + controllers + ",").find("," + name + ",") != std::string::npos;
}

// A line of /proc/self/cgroup is "number:controllers:/group", without controllers in version 2.
template <typename Unified, typename Controller>
Limit least(const fs::path& root, const std::string& name, Unified&& unified,
            Controller&& controller) {
  const fs::path groups = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  Limit least;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    const Limit limit = controllers.empty()        ? leastAround(groups, group, unified)
                        : names(controllers, name) ? leastAround(groups / name, group, controller)
                                                   : std::nullopt;
    if (limit) least = std::min(*limit, least.value_or(*limit));
  }
  return least;
}

}  // namespace

std::optional<double> cpuQuota(const fs::path& root) {
  return least(root, "cpu", quotaOfUnified, quotaOfController);
}

std::optional<double> memoryLimit(const fs::path& root) {
  return least(root, "memory", limitIn("memory.max"), limitIn("memory.limit_in_bytes"));
}

std::optional<double> freeMemory(const fs::path& root) {
  return least(root, "memory", limitIn("memory.max", "memory.current"),
               limitIn("memory.limit_in_bytes", "memory.usage_in_bytes"));
}

}  // namespace fl::host
