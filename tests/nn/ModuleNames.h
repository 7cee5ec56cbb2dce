// The modules that there are, for tests that must have a case of each.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

namespace fl::test {

// Those of a room, "fl/nn", as docs/modules.md lists them.
inline std::set<std::string> modulesOf(const std::string& room) {
  std::ifstream file("docs/modules.md");
  std::set<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| `") && line.find("](../" + room + "/") != std::string::npos) {
      names.insert(line.substr(3, line.find('`', 3) - 3));
    }
  }
  EXPECT_FALSE(names.empty()) << room;
  return names;
}

}  // namespace fl::test
