// FL_JIT_NAMES=on: the jitdump of a program's kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "fl/base/Flags.h"
#include "fl/tensor/tensor.h"

namespace fl::testing {
namespace {

using ::testing::Key;
using ::testing::MatchesRegex;
using ::testing::UnorderedElementsAre;

// Flags are read when the first tensor is made.
const bool names = [] {
  flags().jit = "sync";
  flags().cache = "off";
  flags().jitNames = "on";
  return true;
}();

// What perf's jitdump-specification.txt lays down.
struct FileHeader {
  uint32_t magic, version, totalSize, machine, padding, process;
  uint64_t time, flags;
};
struct CodeLoad {
  uint32_t id, totalSize;
  uint64_t time;
  uint32_t process, thread;
  uint64_t place, address, codeSize, index;
};

template <typename T>
T structAt(const std::string& bytes, size_t offset) {
  T value;
  EXPECT_LE(offset + sizeof(T), bytes.size());
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::string dumpOf(const std::string& folder) {
  const std::string name = "jit-" + std::to_string(getpid()) + ".dump";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename() == name) {
      std::ifstream stream(entry.path(), std::ios::binary);
      return {std::istreambuf_iterator<char>(stream), {}};
    }
  }
  ADD_FAILURE() << "no " << name;
  return "";
}

TEST(PerfDumpTest, HasTheKernelsOfAProgramByName) {
  const std::string folder = ::testing::TempDir() + "/perf";
  std::filesystem::create_directories(folder);
  setenv("JITDUMPDIR", folder.c_str(), 1);
  const Tensor x = Tensor::fromVector<float>({2, 2}, {1, 2, 3, 4});
  (tanh(x * 2) + x).toHostVector<float>();
  sum(exp(x), {0}).toHostVector<float>();

  const std::string dump = dumpOf(folder);
  const auto header = structAt<FileHeader>(dump, 0);
  EXPECT_EQ(header.magic, 0x4A695444u);
  EXPECT_EQ(header.totalSize, sizeof(FileHeader));
  EXPECT_EQ(header.flags, 0u);
  EXPECT_EQ(header.process, static_cast<uint32_t>(getpid()));
  std::map<std::string, CodeLoad> kernels;
  for (size_t at = header.totalSize; at < dump.size();) {
    const auto record = structAt<CodeLoad>(dump, at);
    ASSERT_GE(record.totalSize, sizeof(CodeLoad));
    const char* name = dump.data() + at + sizeof(CodeLoad);
    if (record.id == 0) {
      EXPECT_EQ(record.totalSize, sizeof(CodeLoad) + std::strlen(name) + 1 + record.codeSize);
      EXPECT_EQ(std::memcmp(name + std::strlen(name) + 1,
                            reinterpret_cast<const void*>(record.address), record.codeSize),
                0);
      kernels[name] = record;
    }
    at += record.totalSize;
  }
  EXPECT_THAT(kernels, UnorderedElementsAre(Key(MatchesRegex("map mul.tanh.add [0-9a-f]{8}")),
                                            Key(MatchesRegex("rows exp.sum [0-9a-f]{8}"))));
  for (const auto& [name, record] : kernels) {
    EXPECT_GT(record.codeSize, 0u) << name;
    EXPECT_EQ(record.process, static_cast<uint32_t>(getpid())) << name;
  }
}

}  // namespace
}  // namespace fl::testing
