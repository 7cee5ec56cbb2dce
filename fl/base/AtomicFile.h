// A file that appears complete or not at all. It is written under a name of its own in the same
// directory and takes its name in commit(). Relies on rename() being atomic within a directory.
//
// rename() would replace whatever has the name, so only regular files are replaced: a device, a
// fifo or a directory is refused. A symbolic link stays; the file that it leads to is replaced.
#pragma once

#include <filesystem>
#include <string>

namespace fl {

class AtomicFile {
 public:
  // Throws std::runtime_error naming the path where it leads to what is no regular file.
  explicit AtomicFile(std::filesystem::path path);
  // Removes the partial file unless it was committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // The name to write to, which no other thread or process uses; closed before commit().
  const std::filesystem::path& partial() const { return partial_; }
  // Gives the file its name, replacing what had it. Throws std::runtime_error naming it.
  void commit();

  // A file with the text. Throws std::runtime_error naming the path where it cannot be.
  static void write(const std::filesystem::path& path, const std::string& text);

  // Throws std::runtime_error, naming the path, where such a file could not be written: so that a
  // program finds out before its work is done, not after.
  static void checkWritable(const std::filesystem::path& path);
  // True if both paths lead to one file, whether it is there or not. For paths that checkWritable
  // accepts.
  static bool sameFile(const std::filesystem::path& x, const std::filesystem::path& y);

 private:
  std::filesystem::path path_;    // as it was given
  std::filesystem::path target_;  // where it leads
  std::filesystem::path partial_;
};

}  // namespace fl
