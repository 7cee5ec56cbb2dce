#include "benchmarks/Phases.h"

#include <iostream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "benchmarks/Folder.h"
#include "fl/fl.h"

namespace fl::bench {

Phases phasesOf(const std::function<void()>& work) {
  const Folder folder("fl-profile");
  startProfile(folder.path() / "trace.json");
  work();
  std::ostringstream table;
  {
    const absl::Cleanup show = [shown = std::cerr.rdbuf(table.rdbuf())] { std::cerr.rdbuf(shown); };
    stopProfile();
  }
  static const std::regex line(
      "profile of ([0-9.]+) s: recording ([0-9.]+) ms, planning ([0-9.]+) ms, "
      "compiling ([0-9.]+) ms, running ([0-9.]+) ms");
  std::smatch found;
  const std::string text = table.str();
  if (!std::regex_search(text, found, line)) throw std::runtime_error("no table: " + text);
  return {std::stod(found[1]) * 1e6, std::stod(found[2]) * 1e3, std::stod(found[3]) * 1e3,
          std::stod(found[4]) * 1e3, std::stod(found[5]) * 1e3};
}

}  // namespace fl::bench
