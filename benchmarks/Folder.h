#pragma once

#include <filesystem>
#include <string>

namespace fl::bench {

// A folder for temporary files, which goes with this object.
class Folder {
 public:
  // Its name begins with `prefix`. Throws std::runtime_error if it cannot be made.
  explicit Folder(const std::string& prefix);
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace fl::bench
