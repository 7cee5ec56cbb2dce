// The most memory that a training step holds at once: lazily at most a tenth more than eagerly.
#include <gtest/gtest.h>

#include <iostream>

#include "benchmarks/TrainSteps.h"
#include "fl/fl.h"
#include "fl/runtime/SystemMemory.h"
#include "tests/lazy/BufferLog.h"

namespace fl::bench {
namespace {

// Bytes, with those of parameters, data and the optimizer's state.
size_t peakOf(const Workload& step, const char* backend) {
  const BackendScope scope(backend, "cpu");
  const auto before = static_cast<int64_t>(runtime::hostMemoryManager()->stats().liveBytes);
  const auto run = step.make();
  for (int i = 0; i < 3; ++i) {
    run();
  }
  const auto alive = static_cast<int64_t>(runtime::hostMemoryManager()->stats().liveBytes) - before;
  return static_cast<size_t>(alive) + testing::peakGrowth([&] { run(); });
}

TEST(PeakMemory, OfLazyStepsIsThatOfEagerOnes) {
  for (const Workload& step : {perceptronStep(), mnistStep(), residualStep(), transformerStep(2)}) {
    const size_t eager = peakOf(step, "eager"), lazy = peakOf(step, "lazy");
    std::cout << step.name << ": " << lazy << " of " << eager << " bytes\n";
    EXPECT_LE(static_cast<double>(lazy), 1.1 * static_cast<double>(eager)) << step.name;
  }
}

// Whether the device can give pages back: none goes that the next step would touch again.
class PeakMemoryOf : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Discards, PeakMemoryOf, ::testing::Bool());

// What a step takes again is kept, though little is idle.
TEST_P(PeakMemoryOf, SteadyStepsTakeNothingFromTheSystem) {
  const auto taken = std::make_shared<size_t>(0);
  auto functions = std::make_shared<MemoryManagerDeviceInterface>();
  functions->nativeAlloc = [taken](size_t bytes) {
    ++*taken;
    return runtime::systemAllocate(bytes);
  };
  functions->nativeFree = [](void* block) { runtime::systemFree(block); };
  if (GetParam()) {
    functions->nativeDiscard = [taken](void* block, size_t bytes) {
      ++*taken;
      runtime::systemDiscard(block, bytes);
    };
  }
  runtime::setHostMemoryManager(runtime::makeCachingMemoryManager(functions));
  for (const Workload& step : {perceptronStep(), mnistStep(), residualStep(), transformerStep(2)}) {
    for (const char* backend : {"lazy", "eager"}) {
      const BackendScope scope(backend, "cpu");
      const auto run = step.make();
      for (int i = 0; i < 5; ++i) run();
      EXPECT_GT(*taken, 0u);
      *taken = 0;
      for (int i = 0; i < 5; ++i) run();
      EXPECT_EQ(*taken, 0u) << step.name << ", " << backend;
    }
  }
  runtime::resetHostMemoryManager();
}

}  // namespace
}  // namespace fl::bench
