#include "fl/base/AtomicFile.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace fl {

namespace fs = std::filesystem;

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  static std::atomic<int> count{0};
  partial_ =
      path_.string() + ".partial." + std::to_string(getpid()) + "." + std::to_string(count++);
}

AtomicFile::~AtomicFile() {
  std::error_code ignored;
  fs::remove(partial_, ignored);
}

void AtomicFile::commit() {
  std::error_code error;
  fs::rename(partial_, path_, error);
  if (error) {
    throw std::runtime_error(path_.string() + ": cannot be written: " + error.message());
  }
}

void AtomicFile::checkWritable(const fs::path& path) {
  const fs::path directory = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code error;
  if (fs::is_directory(path, error)) {
    error = std::make_error_code(std::errc::is_a_directory);
  } else if (access(directory.c_str(), W_OK | X_OK) != 0) {
    error = std::error_code(errno, std::generic_category());
  } else if (!fs::is_directory(directory, error)) {
    error = std::make_error_code(std::errc::not_a_directory);
  } else {
    return;
  }
  throw std::runtime_error(path.string() + ": cannot be written: " + error.message());
}

}  // namespace fl
