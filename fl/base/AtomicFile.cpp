#include "fl/base/AtomicFile.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace fl {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const std::string& reason) {
  throw std::runtime_error(path.string() + ": cannot be written: " + reason);
}

// Throws if the path leads to something that a file must not replace.
void checkKind(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::none) fail(path, error.message());
  if (type == fs::file_type::directory)
    fail(path, std::make_error_code(std::errc::is_a_directory).message());
  if (type != fs::file_type::regular && type != fs::file_type::not_found)
    fail(path, "it is no regular file");
}

// Where symbolic links lead, also if nothing is there yet. checkKind has refused loops.
fs::path followLinks(fs::path path) {
  std::error_code error;
  for (fs::path link; link = fs::read_symlink(path, error), !error;)
    path = path.parent_path() / link;
  return path;
}

}  // namespace

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  checkKind(path_);
  target_ = followLinks(path_);
  static std::atomic<int> count{0};
  // Of processes in several containers, some may have one number. Never destroyed: files are also
  // written when the program ends.
  static const auto& own = *new auto(".partial." + std::to_string(std::random_device()()) + ".");
  partial_ = target_.string() + own + std::to_string(getpid()) + "." + std::to_string(count++);
}

AtomicFile::~AtomicFile() {
  std::error_code ignored;
  fs::remove(partial_, ignored);
}

void AtomicFile::commit() {
  std::error_code error;
  fs::rename(partial_, target_, error);
  if (error) fail(path_, error.message());
}

void AtomicFile::write(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  std::ofstream stream(file.partial());
  stream << text;
  stream.close();
  if (!stream) fail(path, std::error_code(errno, std::generic_category()).message());
  file.commit();
}

void AtomicFile::checkWritable(const fs::path& path) {
  checkKind(path);
  const fs::path target = followLinks(path);
  const fs::path directory = target.has_parent_path() ? target.parent_path() : ".";
  std::error_code error;
  if (fs::exists(directory, error) && !fs::is_directory(directory, error))
    fail(path, std::make_error_code(std::errc::not_a_directory).message());
  if (access(directory.c_str(), W_OK | X_OK) != 0)
    fail(path, std::error_code(errno, std::generic_category()).message());
}

bool AtomicFile::sameFile(const fs::path& x, const fs::path& y) {
  // What is not there keeps its name: absolute, or one that is there could not be equal.
  const auto name = [](const fs::path& path) {
    return fs::weakly_canonical(fs::absolute(followLinks(path)));
  };
  return name(x) == name(y);
}

}  // namespace fl
