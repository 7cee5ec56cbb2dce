// A file that appears complete or not at all. It is written under a temporary name in its own
// directory and takes its name in commit(). Relies on rename() being atomic within a directory.
#pragma once

#include <filesystem>

namespace fl::app {

class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  // Removes the temporary file unless it was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // The name to write to; the writer closes it before commit().
  const std::filesystem::path& temporary() const { return temporary_; }
  // Gives the file its name, replacing what had it. Throws std::runtime_error.
  void commit();

  // Throws std::runtime_error, naming the path, where such a file could not be written: so that a
  // program finds out before its work is done, not after.
  static void checkWritable(const std::filesystem::path& path);

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
};

}  // namespace fl::app
