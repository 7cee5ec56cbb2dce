#include "fl/host/ControlGroups.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

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

auto limitIn(const char* file) {
  return [=](const fs::path& group) { return numberIn(group / file); };
}

// The sum of the numbers behind names that lines begin with, of units; nothing if there are none.
Limit sumIn(const fs::path& file, const std::vector<std::string>& names, double unit = 1) {
  std::ifstream lines(file);
  Limit sum;
  double number;
  for (std::string name; lines >> name >> number; std::getline(lines, name))
    if (std::ranges::find(names, name) != names.end()) sum = sum.value_or(0) + number * unit;
  return sum;
}

// Reads a limit, without what another file says is used of it. Where no more than `most` is left,
// the pages of files, whose names in the statistics begin with `prefix`, are, too: the system drops
// them before it runs short. They are slow to read.
auto leftIn(const char* file, const char* used, const std::string& prefix, Limit most) {
  return [=](const fs::path& group) -> Limit {
    const Limit limit = numberIn(group / file);
    if (!limit) return limit;
    const double left = *limit - numberIn(group / used).value_or(0);
    if (most && left > *most) return left;
    const auto names = {prefix + "inactive_file", prefix + "active_file"};
    return std::clamp(left + sumIn(group / "memory.stat", names).value_or(0), 0.0, *limit);
  };
}

Limit lesser(Limit a, Limit b) { return a && b ? std::min(a, b) : a ? a : b; }

// The least limit of `group` and those around it, up to `top`.
template <typename Read>
Limit leastAround(const fs::path& top, const std::string& group, Read&& read) {
  Limit least;
  for (fs::path path = fs::path(group).relative_path();; path = path.parent_path()) {
    least = lesser(least, read(top / path));
    if (path.empty()) return least;
  }
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
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") least = lesser(least, leastAround(groups, group, unified));
    if (controllers.find("," + name + ",") != std::string::npos)
      least = lesser(least, leastAround(groups / name, group, controller));
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
  const fs::path machine = root / "proc/meminfo";
  const Limit free = sumIn(machine, {"MemAvailable:"}, 1024);
  const Limit left =
      lesser(free, least(root, "memory", leftIn("memory.max", "memory.current", "", free),
                         leftIn("memory.limit_in_bytes", "memory.usage_in_bytes", "total_", free)));
  const double swap = sumIn(machine, {"SwapFree:"}, 1024).value_or(0);
  if (!left || swap == 0) return left;
  const auto none = [](const fs::path&) { return Limit(); };
  return *left +
         *lesser(swap, least(root, "memory",
                             leftIn("memory.swap.max", "memory.swap.current", "", -1), none));
}

}  // namespace fl::host
