#include "tools/Files.h"

#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

namespace fl::tools {

std::string readInput(const std::string& path) {
  std::ostringstream text;
  if (path == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error(path + ": cannot be read");
  }
  text << file.rdbuf();
  return text.str();
}

}  // namespace fl::tools
