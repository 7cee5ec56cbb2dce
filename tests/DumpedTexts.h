// What FL_DUMP wrote of plans behind one of the passes.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace fl::testing {

// By plan, in the order of their making.
inline std::vector<std::string> dumpedTexts(const std::filesystem::path& folder,
                                            const std::string& pass) {
  std::vector<std::filesystem::path> paths;
  for (const auto& stage : std::filesystem::recursive_directory_iterator(folder))
    if (stage.path().string().ends_with("_" + pass + ".flir")) paths.push_back(stage.path());
  std::ranges::sort(paths);
  std::vector<std::string> texts;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

}  // namespace fl::testing
