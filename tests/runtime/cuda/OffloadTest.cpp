// Memory budgets on the device `cuda`: values wait on the host, in pinned memory, and come back in
// time (FakeGpu.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/runtime/cuda/Memory.h"
#include "tests/ErrorOf.h"
#include "tests/runtime/cuda/FakeGpu.h"

namespace fl::testing {
namespace {

constexpr Dim kWidth = 32, kTerms = 256;
constexpr int kDepth = 12;
constexpr size_t kValue = kWidth * kWidth * sizeof(float);

// Small values, each a sum over much that depends on the one before it, which are read on the way
// back: to compute them again takes longer than to move them.
std::vector<float> chain(const Tensor& x) {
  std::vector<Tensor> values = {mean(x, {1}, /*keepDims=*/true)};
  for (int i = 1; i < kDepth; ++i) {
    values.push_back(mean(x * values.back() + 1, {1}, /*keepDims=*/true));
  }
  Tensor back = reshape(values.back(), {kWidth, kWidth});
  for (int i = kDepth; i-- > 0;) {
    back = matmul(reshape(values[i], {kWidth, kWidth}), back) / kWidth;
    values.pop_back();  // what is held is a result
  }
  return back.toHostVector<float>();
}

class CudaOffload : public ::testing::Test {
 protected:
  CudaOffload() { gpu_.reset(); }
  ~CudaOffload() override {
    setMemoryBudget(0);
    EXPECT_THAT(gpu_.misuse(), ::testing::ElementsAre());
  }

  FakeGpu& gpu_ = FakeGpu::install();
  const BackendScope cuda_{"lazy", "cuda"};
};

// Before any other test has pinned some.
TEST_F(CudaOffload, WithoutMemoryOfTheHostThePlanFails) {
  const Tensor x = rand({kWidth * kWidth, kTerms}) - 0.5;
  const std::vector<float> expected = chain(x);
  setMemoryBudget(5 * kValue);
  gpu_.failCall("cuMemAllocHost", CUDA_ERROR_OUT_OF_MEMORY);
  const std::string error = test::errorOf<std::bad_alloc>([&] { chain(x); });
  EXPECT_THAT(error, ::testing::HasSubstr("temporaries of a plan on the host"));
  gpu_.reset();
  EXPECT_EQ(chain(x), expected);
}

TEST_F(CudaOffload, PinnedMemoryGoesBackWhereThereIsNoMore) {
  auto& memory = runtime::cuda::Memory::of(runtime::cuda::Context::of(0));
  memory.allocateOnHost(3 << 20);
  gpu_.failCall("cuMemAllocHost", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_THROW(memory.allocateOnHost(8 << 20), std::bad_alloc);
  EXPECT_THAT(gpu_.done(), ::testing::Contains("free on the host"));
}

// At first steps are put into the stream one by one, later as a graph.
TEST_F(CudaOffload, ValuesWaitOnTheHost) {
  const Tensor x = rand({kWidth * kWidth, kTerms}) - 0.5;
  const std::vector<float> expected = chain(x);
  setMemoryBudget(5 * kValue);
  const uint64_t fallbacks = runtime::counters().fallbacks;
  const uint64_t again = runtime::counters().stepsRecomputed;
  size_t graphs = 0;  // of the last run
  for (int i = 0; i < 4; ++i) {
    gpu_.reset();
    EXPECT_EQ(chain(x), expected) << i;
    const FakeGpu::Counts counts = gpu_.counts();
    EXPECT_GE(counts.bytesUp, 6 * kValue) << i;
    EXPECT_EQ(counts.bytesDown, counts.bytesUp + kValue) << i;  // what is read
    graphs = counts.graphLaunches;
  }
  EXPECT_EQ(graphs, runtime::poisons() ? 0u : 1u) << "poison comes between the steps of a plan";
  EXPECT_EQ(runtime::counters().stepsRecomputed, again);
  EXPECT_EQ(runtime::counters().fallbacks, fallbacks);
}

}  // namespace
}  // namespace fl::testing
