#include "apps/mnist/AtomicFile.h"

#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace fl::app {

namespace fs = std::filesystem;

AtomicFile::AtomicFile(fs::path path)
    : path_(std::move(path)), temporary_(path_.string() + ".tmp" + std::to_string(getpid())) {}

AtomicFile::~AtomicFile() {
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

void AtomicFile::commit() {
  std::error_code error;
  fs::rename(temporary_, path_, error);
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

}  // namespace fl::app
