#include "fl/nn/Serialization.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace fl::detail {
namespace {

constexpr char kFormat[] = "fl-save1";
constexpr size_t kFormatBytes = sizeof(kFormat) - 1;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw std::runtime_error(path + ": " + reason);
}

std::string systemError() { return std::strerror(errno); }

// A name beside `path` that no other thread or process uses; gone again unless it was renamed.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path) {
    static std::atomic<int> count{0};
    name_ = path + ".partial." + std::to_string(getpid()) + "." + std::to_string(count++);
  }
  ~PartialFile() {
    std::error_code ignored;
    std::filesystem::remove(name_, ignored);
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

}  // namespace

void writeFile(const std::string& path, const std::function<void(std::ostream&)>& write) {
  const PartialFile partial(path);
  std::ofstream stream(partial.name(), std::ios::binary);
  if (!stream) {
    fail(path, "cannot be written: " + systemError());
  }
  stream.write(kFormat, kFormatBytes);
  try {
    write(stream);
  } catch (const std::exception& error) {
    fail(path, std::string("cannot be saved: ") + error.what());
  }
  stream.close();
  if (!stream) {
    fail(path, "cannot be written: " + systemError());
  }
  std::error_code error;
  std::filesystem::rename(partial.name(), path, error);
  if (error) {
    fail(path, "cannot be written: " + error.message());
  }
}

void readFile(const std::string& path, const std::function<void(std::istream&)>& read) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    fail(path, "cannot be opened: " + systemError());
  }
  char format[kFormatBytes] = {};
  stream.read(format, kFormatBytes);
  if (!stream || std::memcmp(format, kFormat, kFormatBytes) != 0) {
    fail(path, "is no file that fl::save has written");
  }
  try {
    read(stream);
  } catch (const std::exception& error) {
    const bool atEnd = stream.rdbuf()->sgetc() == std::ifstream::traits_type::eof();
    fail(path, std::string(atEnd ? "ends too early" : "cannot be loaded") + ": " + error.what());
  }
}

}  // namespace fl::detail
