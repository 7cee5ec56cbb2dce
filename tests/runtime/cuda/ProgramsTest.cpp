// Random programs (tests/fuzz/RandomProgram.h) on the device `cuda` (Gpu.h): they read the values
// of the CPU's kernels, to the bit without libraries; those that a library has made products of are
// near to those of the device `ref`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "tests/fuzz/Differential.h"
#include "tests/fuzz/RandomProgram.h"
#include "tests/runtime/cuda/Gpu.h"
#include "tests/runtime/cuda/WithoutLibraries.h"

namespace fl::testing {
namespace {

// A program's kernels are compiled one by one, which is slow on a fake GPU.
constexpr int kStatements = 30;

struct ProgramRun {
  std::vector<HostValue> values;
  std::string text;
  bool isTame;
  uint64_t libraryCalls;
};

// With `budgets`, each read is within about the least that its plans meet.
ProgramRun run(TensorBackend& backend, uint64_t seed, bool measure = false, bool budgets = false) {
  const BackendScope scope(backend);
  const uint64_t before = runtime::counters().libraryCalls;
  RandomProgram program(
      {.seed = seed, .measure = measure, .cut = {.statements = kStatements}, .budgets = budgets});
  std::vector<HostValue> values = program.run();
  return {std::move(values), program.text(), program.tame(),
          runtime::counters().libraryCalls - before};
}

void expectSame(const ProgramRun& actual, const ProgramRun& expected, bool near) {
  ASSERT_EQ(actual.values.size(), expected.values.size());
  for (size_t i = 0; i < expected.values.size(); ++i) {
    EXPECT_EQ(difference(actual.values[i], expected.values[i], near), "")
        << expected.values[i].name << " of\n"
        << actual.text;
  }
}

class CudaFuzz : public ::testing::TestWithParam<uint64_t> {};

TEST_P(CudaFuzz, ProgramsReadTheCpusValues) {
  if (!gpuProblem().empty()) GTEST_SKIP() << gpuProblem();
  const uint64_t seed = GetParam();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const ProgramRun expected = run(cpuWithoutLibraries(), seed);
  const ProgramRun plain = run(getBackend("lazy", "cuda"), seed);
  if (plain.libraryCalls == 0) {
    expectSame(plain, expected, /*near=*/false);
  } else {
    const ProgramRun exact = run(cudaWithoutLibraries(), seed);
    EXPECT_EQ(exact.libraryCalls, 0u);
    expectSame(exact, expected, /*near=*/false);
    // A library adds in another order; of other programs nobody knows how far values may be apart.
    if (plain.isTame) {
      expectSame(plain, run(getBackend("eager", "ref"), seed, /*measure=*/true), /*near=*/true);
    }
  }
  EXPECT_THAT(takeMisuse(), ::testing::ElementsAre());
}

// What waits on the host, among it.
TEST_P(CudaFuzz, ProgramsReadTheSameWithinBudgets) {
  if (!gpuProblem().empty()) GTEST_SKIP() << gpuProblem();
  const uint64_t seed = GetParam();
  SCOPED_TRACE("seed " + std::to_string(seed));
  expectSame(run(cudaWithoutLibraries(), seed, /*measure=*/false, /*budgets=*/true),
             run(cpuWithoutLibraries(), seed), /*near=*/false);
  EXPECT_THAT(takeMisuse(), ::testing::ElementsAre());
}

INSTANTIATE_TEST_SUITE_P(Programs, CudaFuzz, ::testing::Range(uint64_t{1}, uint64_t{25}));

}  // namespace
}  // namespace fl::testing
