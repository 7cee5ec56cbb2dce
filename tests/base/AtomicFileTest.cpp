#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "fl/base/AtomicFile.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

namespace fs = std::filesystem;

fs::path makeFolder(const std::string& name) {
  const fs::path folder = fs::path(::testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::string read(const fs::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void replace(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  std::ofstream(file.partial()) << text;
  file.commit();
}

// What is at `path` is refused, by the check and by the file itself, with these words.
void expectRefused(const fs::path& path, const std::string& reason) {
  const std::string message = path.string() + ": cannot be written: " + reason;
  EXPECT_EQ(test::errorOf<std::runtime_error>([&] { AtomicFile::checkWritable(path); }), message);
  EXPECT_EQ(test::errorOf<std::runtime_error>([&] { AtomicFile file(path); }), message);
}

size_t filesIn(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST(AtomicFile, ReplacesAFileWholeOrNotAtAll) {
  const fs::path folder = makeFolder("whole");
  replace(folder / "file", "old");
  EXPECT_EQ(read(folder / "file"), "old");
  {
    AtomicFile file(folder / "file");
    std::ofstream(file.partial()) << "half of the n";
  }
  EXPECT_EQ(read(folder / "file"), "old");
  replace(folder / "file", "new");
  EXPECT_EQ(read(folder / "file"), "new");
  EXPECT_EQ(filesIn(folder), 1u);
}

TEST(AtomicFile, LeavesWhatIsNoRegularFile) {
  const fs::path folder = makeFolder("kinds");
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  fs::create_symlink("fifo", folder / "link");
  expectRefused(folder / "fifo", "it is no regular file");
  expectRefused(folder / "link", "it is no regular file");
  EXPECT_TRUE(fs::is_fifo(folder / "fifo"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));

  fs::create_directory(folder / "directory");
  expectRefused(folder / "directory", "Is a directory");
  fs::create_symlink("loop", folder / "loop");
  expectRefused(folder / "loop", "Too many levels of symbolic links");
  EXPECT_EQ(filesIn(folder), 4u);
}

TEST(AtomicFile, WritesThroughLinks) {
  const fs::path folder = makeFolder("links");
  const fs::path other = makeFolder("links of others");
  replace(other / "file", "old");
  fs::create_symlink(other / "file", folder / "inner");
  fs::create_symlink("inner", folder / "outer");
  replace(folder / "outer", "new");
  EXPECT_EQ(read(other / "file"), "new");

  // One that leads nowhere yet makes the file there.
  fs::create_symlink("../links of others/made", folder / "dangling");
  AtomicFile::checkWritable(folder / "dangling");
  replace(folder / "dangling", "made");
  EXPECT_EQ(read(other / "made"), "made");
  for (const char* link : {"inner", "outer", "dangling"}) {
    EXPECT_TRUE(fs::is_symlink(folder / link)) << link;
  }
  EXPECT_EQ(filesIn(folder), 3u);
  EXPECT_EQ(filesIn(other), 2u);
}

TEST(AtomicFile, FindsOutBeforehandWhereItCannotWrite) {
  const fs::path folder = makeFolder("beforehand");
  replace(folder / "file", "no folder");
  const auto check = [](const fs::path& path) {
    return test::errorOf<std::runtime_error>([&] { AtomicFile::checkWritable(path); });
  };
  EXPECT_EQ(check(folder / "new"), "");
  EXPECT_EQ(
      check(folder / "no folder" / "file"),
      (folder / "no folder" / "file").string() + ": cannot be written: No such file or directory");
  EXPECT_EQ(check(folder / "file" / "file"),
            (folder / "file" / "file").string() + ": cannot be written: Not a directory");
  fs::create_symlink("no folder/file", folder / "link");
  EXPECT_EQ(check(folder / "link"),
            (folder / "link").string() + ": cannot be written: No such file or directory");
}

// What was asked for before the first file is written after what the first file made is destroyed.
TEST(AtomicFileDeathTest, WritesWhenTheProgramEnds) {
  GTEST_FLAG_SET(death_test_style,
                 "threadsafe");  // a process of its own, which has written nothing
  static const fs::path folder = makeFolder("end");
  const auto write = [] {
    std::atexit([] {
      const AtomicFile file(folder / "last");
      const std::string name = file.partial().filename().string();
      std::fputs(name.starts_with("last.partial.") ? "beside it" : name.c_str(), stderr);
    });
    replace(folder / "first", "");
    std::exit(0);
  };
  EXPECT_EXIT(write(), ::testing::ExitedWithCode(0), "^beside it$");
}

TEST(AtomicFile, KnowsPathsOfOneFile) {
  const fs::path folder = makeFolder("same");
  fs::create_directory(folder / "inside");
  fs::create_directory_symlink("inside", folder / "also inside");
  fs::create_symlink("inside/file", folder / "link");
  for (const bool there : {false, true}) {
    SCOPED_TRACE(there);
    if (there) {
      replace(folder / "inside" / "file", "");
    }
    EXPECT_TRUE(
        AtomicFile::sameFile(folder / "inside/file", folder / "also inside/../inside/file"));
    EXPECT_TRUE(AtomicFile::sameFile(folder / "inside/file", folder / "also inside/file"));
    EXPECT_TRUE(AtomicFile::sameFile(folder / "link", folder / "inside/file"));
    EXPECT_FALSE(AtomicFile::sameFile(folder / "file", folder / "inside/file"));
  }
  EXPECT_TRUE(AtomicFile::sameFile("missing", "./missing"));
  EXPECT_TRUE(AtomicFile::sameFile("missing", fs::current_path() / "missing"));
}

}  // namespace
}  // namespace fl
