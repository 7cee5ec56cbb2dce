// Kernels that an earlier process compiled: here an earlier engine, whose kernels no later one has
// but on disk. With FL_FAULT=emit a kernel that reaches LLVM is counted as a fallback.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "fl/base/Flags.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"
#include "tests/lazy/FreshEngine.h"

namespace fl::testing {
namespace {

namespace fs = std::filesystem;

class KeptKernels : public ::testing::Test {
 protected:
  KeptKernels() {
    flags().jit = "sync";
    folder_ = fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    flags().cacheFolder = folder_;
  }
  ~KeptKernels() override {
    flags().cacheFolder = "";
    flags().cache = "on";
    flags().fault = "";
    flags().cpu = "";
  }

  static std::vector<float> compute() {
    const Tensor x = arange(0, 100, 1, dtype::f32);
    return concatenate(std::vector<Tensor>{sum(tanh(x) * x, {0}, true), sort(cos(x), 0)}, 0)
        .toHostVector<float>();
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> result;
    for (const auto& entry : fs::directory_iterator(folder_ / "kernels")) {
      if (entry.is_regular_file()) {
        result.push_back(entry.path());
      }
    }
    return result;
  }

  fs::path folder_;
};

TEST_F(KeptKernels, AreLoadedWithoutTheCompiler) {
  std::vector<float> want;
  uint64_t compiled = 0;
  {
    const FreshEngine engine;
    const Counts counts;
    want = compute();
    compiled = counts.kernelsCompiled();
    EXPECT_GE(compiled, 2u);
    EXPECT_EQ(counts.kernelsLoaded(), 0u);
  }
  const uint64_t machines = codegen::cpu::targetMachinesMade();
  EXPECT_GT(machines, 0u);
  EXPECT_EQ(files().size(), compiled);
  EXPECT_EQ(fs::status(folder_ / "kernels").permissions(), fs::perms::owner_all);
  for (const char* jit : {"sync", "async"}) {
    flags().jit = jit;
    flags().fault = "emit";
    const FreshEngine engine;
    const Counts counts;
    EXPECT_EQ(compute(), want);
    EXPECT_EQ(counts.kernelsLoaded(), compiled);
    EXPECT_EQ(counts.kernelsCompiled(), 0u);
    EXPECT_EQ(codegen::cpu::targetMachinesMade(), machines);
    EXPECT_EQ(counts.fallbacks(), 0u);
  }
}

// A processor may have no more than x86-64-v3, so that the other target is the same.
TEST_F(KeptKernels, AreOfOneTarget) {
  {
    const FreshEngine engine;
    compute();
  }
  flags().cpu = "x86-64-v3";
  const bool isOther = __builtin_cpu_supports("x86-64-v4");
  const FreshEngine engine;
  const Counts counts;
  compute();
  EXPECT_EQ(counts.kernelsLoaded() == 0, isOther);
  EXPECT_EQ(counts.kernelsCompiled() > 0, isOther);
}

TEST_F(KeptKernels, ThatAreDamagedAreCompiledAgain) {
  std::vector<float> want;
  {
    const FreshEngine engine;
    want = compute();
  }
  const std::vector<fs::path> kept = files();
  for (size_t i = 0; i < kept.size(); ++i) {
    fs::resize_file(kept[i], i % 2 == 0 ? fs::file_size(kept[i]) / 2 : 0);
  }
  for (const uint64_t compiled : {kept.size(), size_t{0}}) {
    const FreshEngine engine;
    const Counts counts;
    EXPECT_EQ(compute(), want);
    EXPECT_EQ(counts.kernelsCompiled(), compiled);
    EXPECT_EQ(counts.kernelsLoaded(), kept.size() - compiled);
  }
}

TEST_F(KeptKernels, ThatCannotBeReadAreCompiledAgain) {
  std::vector<float> want;
  {
    const FreshEngine engine;
    want = compute();
  }
  const std::vector<fs::path> kept = files();
  for (const fs::path& path : kept) {
    fs::remove(path);
    fs::create_directory(path);
  }
  for (const uint64_t compiled : {kept.size(), size_t{0}}) {
    const FreshEngine engine;
    const Counts counts;
    EXPECT_EQ(compute(), want);
    EXPECT_EQ(counts.kernelsCompiled(), compiled);
    EXPECT_EQ(counts.fallbacks(), 0u);
  }
  EXPECT_EQ(files().size(), kept.size());
}

// Of processes that start together, one compiles each kernel.
TEST_F(KeptKernels, AreCompiledByOneProcess) {
  constexpr int kProcesses = 8;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (int i = 0; i < kProcesses; ++i) {
    if (fork() == 0) {
      const FreshEngine engine;
      const Counts counts;
      compute();
      const uint64_t compiled = counts.kernelsCompiled();
      _exit(write(ends[1], &compiled, sizeof(compiled)) == sizeof(compiled) ? 0 : 1);
    }
  }
  uint64_t total = 0;
  for (int i = 0; i < kProcesses; ++i) {
    uint64_t compiled = 0;
    EXPECT_EQ(read(ends[0], &compiled, sizeof(compiled)), ssize_t{sizeof(compiled)});
    total += compiled;
    int status = 0;
    wait(&status);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(total, files().size());
}

TEST_F(KeptKernels, AreNoneThatAFaultMakesWrong) {
  const std::vector<float> right = compute();
  fs::remove_all(folder_);
  flags().fault = "wrong:tanh";
  {
    const FreshEngine engine;
    EXPECT_NE(compute(), right);
  }
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(KeptKernels, AreNoneIfTheCacheIsOff) {
  flags().cache = "off";
  for (int i = 0; i < 2; ++i) {
    const FreshEngine engine;
    const Counts counts;
    compute();
    EXPECT_GT(counts.kernelsCompiled(), 0u);
    EXPECT_FALSE(fs::exists(folder_));
  }
}

}  // namespace
}  // namespace fl::testing
