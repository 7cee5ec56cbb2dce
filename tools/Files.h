// Input of the tools.
#pragma once

#include <string>

namespace fl::tools {

// The contents of a file, or of standard input for "-". Throws std::runtime_error naming the file.
std::string readInput(const std::string& path);

}  // namespace fl::tools
