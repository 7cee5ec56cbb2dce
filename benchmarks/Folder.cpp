#include "benchmarks/Folder.h"

#include <cstdlib>
#include <stdexcept>

namespace fl::bench {

Folder::Folder(const std::string& prefix) {
  std::string name = (std::filesystem::temp_directory_path() / (prefix + "-XXXXXX")).string();
  if (!mkdtemp(name.data())) {
    throw std::runtime_error(name + ": cannot be made");
  }
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace fl::bench
