// What is said of libraries of CUDA that are missing or old; they are made here.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "fl/base/CudaLibrary.h"
#include "fl/base/Flags.h"

namespace fl::test {
namespace {

// A shared library with one function, in a folder that is searched first.
std::string makeLibrary(const std::string& file) {
  const std::string folder = std::getenv("TEST_TMPDIR");
  std::ofstream(folder + "/library.c") << "int present(void) { return 7; }\n";
  const std::string path = folder + "/" + file;
  EXPECT_EQ(std::system(("gcc -shared -o " + path + " " + folder + "/library.c").c_str()), 0);
  flags().cudaLib = "/nowhere:" + folder;
  return path;
}

TEST(CudaLibrary, FindsFunctions) {
  const std::string path = makeLibrary("libflwhole.so.13");
  CudaLibrary library("flwhole", 13, 13000);
  const auto present = reinterpret_cast<int (*)()>(library.find("present"));
  ASSERT_NE(present, nullptr);
  EXPECT_EQ(present(), 7);
  EXPECT_EQ(library.path(), path);
  EXPECT_EQ(library.problem(), "");
}

TEST(CudaLibrary, SaysWhatIsMissing) {
  CudaLibrary library("flmissing", 13, 13000);
  EXPECT_EQ(library.find("present"), nullptr);
  EXPECT_EQ(library.problem(),
            "CUDA: fl is built for CUDA 13.0 and needs libflmissing.so.13, which cannot be opened "
            "(libflmissing.so.13: cannot open shared object file: No such file or directory)");
  EXPECT_EQ(library.path(), "");
}

TEST(CudaLibrary, NamesTheOlderVersionThatIsThere) {
  const std::string path = makeLibrary("libflold.so.12");
  CudaLibrary library("flold", 13, 13020);
  EXPECT_EQ(library.find("present"), nullptr);
  EXPECT_EQ(
      library.problem(),
      "CUDA: fl is built for CUDA 13.2 and needs libflold.so.13, and only " + path + " is there");
}

TEST(CudaLibrary, NamesTheFirstFunctionThatAnOlderLibraryLacks) {
  const std::string path = makeLibrary("libflpart.so.13");
  CudaLibrary library("flpart", 13, 13000);
  EXPECT_EQ(library.find("absent"), nullptr);
  EXPECT_EQ(library.find("absentToo"), nullptr);
  EXPECT_EQ(library.problem(),
            "CUDA: fl is built for CUDA 13.0, and " + path + " is older: it has no absent");
}

}  // namespace
}  // namespace fl::test
