// A file that appears complete or not at all. It is written under a name of its own in the same
// directory and takes its name in commit(). Relies on rename() being atomic within a directory.
#pragma once

#include <filesystem>

namespace fl {

class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  // Removes the partial file unless it was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // The name to write to, which no other thread or process uses; closed before commit().
  const std::filesystem::path& partial() const { return partial_; }
  // Gives the file its name, replacing what had it. Throws std::runtime_error naming it.
  void commit();

  // Throws std::runtime_error, naming the path, where such a file could not be written: so that a
  // program finds out before its work is done, not after.
  static void checkWritable(const std::filesystem::path& path);

 private:
  std::filesystem::path path_;
  std::filesystem::path partial_;
};

}  // namespace fl
