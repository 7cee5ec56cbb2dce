// What the user sees of a compiler that fails: right values, one warning a line, a file that
// repeats it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "fl/base/Flags.h"
#include "fl/ir/Text.h"
#include "fl/kernel/Kernel.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A plan of its own for every length.
std::vector<float> compute(Dim length) {
  const Tensor x = arange({length}, 0, dtype::f32);
  Tensor y = sum(exp(x * 0.01) + transpose(reshape(x, {1, length}), {1, 0}), {0}) + x;
  y(range(1, 3)) = 7;
  return y.toHostVector<float>();
}

std::vector<float> expected(Dim length) {
  const BackendScope scope("eager", "cpu");
  return compute(length);
}

// What standard error receives while the compiler fails at `place`.
template <typename Body>
std::string warningsOf(const char* place, Body&& body) {
  flags().fault = place;
  ::testing::internal::CaptureStderr();
  body();
  flags().fault = "";
  return ::testing::internal::GetCapturedStderr();
}

std::string contentOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The file that a warning names at its end.
std::string savedText(const std::string& warning) {
  const size_t begin = warning.find("fl opt ") + 7;
  return contentOf(warning.substr(begin, warning.size() - 1 - begin));
}

TEST(Failure, APlanRunsOperatorByOperator) {
  const std::vector<float> want = expected(40);
  const Counts counts;
  int line = 0;
  const std::string words = warningsOf("fuse", [&] {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(compute(40), want), line = __LINE__;
    }
    EXPECT_EQ(compute(41), expected(41));
  });
  EXPECT_EQ(counts.fallbacks(), 2u) << "plans";
  EXPECT_THAT(words, StartsWith("fl: a plan of "));
  EXPECT_THAT(words, HasSubstr(" operators runs unfused, at tests/lazy/FailureTest.cpp:"));
  EXPECT_THAT(words, HasSubstr(": a fault that FL_FAULT put into fuse; to repeat it: fl opt "));
  EXPECT_EQ(std::count(words.begin(), words.end(), '\n'), 1) << "once a line: " << words;
  const ir::Graph graph = ir::parseGraph(savedText(words));
  EXPECT_GT(graph.nodes().size(), 5u);
  EXPECT_EQ(compute(42), expected(42)) << "without the fault";
  EXPECT_EQ(counts.fallbacks(), 2u);
}

TEST(Failure, AKernelStaysInterpreted) {
  const Counts counts;
  const std::string words = warningsOf("emit", [] {
    const Tensor x = arange(0, 50, 1, dtype::f32);
    const Tensor y = tanh(x) * 3 - x;
    const std::vector<float> values = y.toHostVector<float>();
    const BackendScope scope("eager", "cpu");
    const Tensor z = arange(0, 50, 1, dtype::f32);
    EXPECT_EQ(values, (tanh(z) * 3 - z).toHostVector<float>());
  });
  EXPECT_EQ(counts.fallbacks(), 1u);
  EXPECT_EQ(counts.kernelsCompiled(), 0u);
  EXPECT_THAT(words, StartsWith("fl: a kernel stays interpreted, at tests/lazy/FailureTest.cpp:"));
  EXPECT_NO_THROW(ir::parseKernel(savedText(words))) << words;
}

TEST(Failure, FilesThatRepeatItAreLimited) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "limited" / "failures";
  fs::create_directories(folder);
  for (int64_t i = 0; i < 50; ++i) {
    const std::string name = std::to_string(1'000'000'000'000'000 + i);
    std::ofstream(folder / name) << std::string(1000, 'x');
  }
  flags().cacheFolder = folder.parent_path();
  flags().cacheBytes = "20000";
  const std::string words =
      warningsOf("fuse", [] { EXPECT_EQ(sum(exp(full({43}, 0.0f)) + 1).scalar<float>(), 86); });
  flags().cacheFolder = "";
  flags().cacheBytes = "268435456";
  EXPECT_NE(savedText(words), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 15 + 1);
}

// An index that data holds is the user's error in either case, and is taken back alike.
TEST(Failure, ABadIndexIsStillTheUsers) {
  warningsOf("build", [] {
    Tensor x = arange(0, 8, 1, dtype::f32);
    const Tensor index = Tensor::fromVector(std::vector<int>{1, 9});
    try {
      (x + 1)(index).toHostVector<float>();
      ADD_FAILURE() << "no error";
    } catch (const std::invalid_argument& error) {
      EXPECT_THAT(error.what(), HasSubstr("9"));
      EXPECT_THAT(error.what(), HasSubstr("FailureTest.cpp"));
    }
  });
}

}  // namespace
}  // namespace fl::testing
