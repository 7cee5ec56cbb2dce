// Random programs (tests/fuzz/RandomProgram.h) on the device `cuda` (Gpu.h): they read the values
// of the CPU's kernels, to the bit where no library makes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "tests/fuzz/RandomProgram.h"
#include "tests/runtime/cuda/Gpu.h"
#include "tests/runtime/cuda/WithoutLibraries.h"

namespace fl::testing {
namespace {

// A program's kernels are compiled one by one, which is slow on a fake GPU.
constexpr int kStatements = 30;

// NaN may have other bits where an operator gives one.
bool isSame(dtype type, const std::string& actual, const std::string& expected) {
  if (actual == expected) return true;
  const size_t size = getTypeSize(type);
  for (size_t at = 0; at < expected.size(); at += size) {
    uint64_t x = 0, y = 0;
    std::memcpy(&x, actual.data() + at, size);
    std::memcpy(&y, expected.data() + at, size);
    const bool areNan = isFloating(type) && std::isnan(Number(type, x).toDouble()) &&
                        std::isnan(Number(type, y).toDouble());
    if (x != y && !areNan) return false;
  }
  return true;
}

class CudaFuzz : public ::testing::TestWithParam<uint64_t> {};

TEST_P(CudaFuzz, ProgramsReadTheCpusValues) {
  if (!gpuProblem().empty()) GTEST_SKIP() << gpuProblem();
  const uint64_t seed = GetParam();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto run = [&](std::string* text) {
    RandomProgram program({.seed = seed, .cut = {.statements = kStatements}});
    const auto values = program.run();
    *text = program.text();
    return values;
  };
  std::string text;
  std::vector<HostValue> expected;
  {
    const BackendScope cpu(cpuWithoutLibraries());
    expected = run(&text);
  }
  const BackendScope cuda("lazy", "cuda");
  const uint64_t libraryCalls = runtime::counters().libraryCalls;
  const std::vector<HostValue> actual = run(&text);
  ASSERT_EQ(actual.size(), expected.size());
  EXPECT_THAT(takeMisuse(), ::testing::ElementsAre());
  if (runtime::counters().libraryCalls > libraryCalls) {
    GTEST_SKIP() << "a library made products, which add in another order";
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(isSame(expected[i].type, actual[i].bytes, expected[i].bytes))
        << expected[i].name << " of\n"
        << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, CudaFuzz, ::testing::Range(uint64_t{1}, uint64_t{25}));

}  // namespace
}  // namespace fl::testing
