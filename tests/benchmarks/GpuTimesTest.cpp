// Times on a GPU that is none (FakeGpu.h): everything it does takes a millisecond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "benchmarks/GpuTimes.h"
#include "fl/base/Flags.h"
#include "fl/fl.h"
#include "tests/runtime/cuda/FakeCublasLt.h"
#include "tests/runtime/cuda/FakeCudnn.h"
#include "tests/runtime/cuda/FakeGpu.h"

namespace fl::bench {
namespace {

class GpuTimes : public ::testing::Test {
 protected:
  GpuTimes() {
    flags().poison = "0";  // which fills memory in between
    gpu.reset();
    scope_.emplace("lazy", "cuda");
  }
  ~GpuTimes() override { EXPECT_THAT(gpu.misuse(), ::testing::ElementsAre()); }

  fl::testing::FakeGpu& gpu = fl::testing::FakeGpu::install();

 private:
  std::optional<BackendScope> scope_;
};

TEST_F(GpuTimes, AreThoseOfTheStream) {
  const Tensor x = Tensor::fromVector<float>({1, 2, 3, 4});
  GpuSubject one([&] { (x * 2).value()->data(); });
  GpuSubject two([&] {
    (x * 2).value()->data();
    sum(x, {0}).value()->data();
  });
  for (GpuSubject* subject : {&one, &two}) {
    subject->block();
    subject->block();
  }
  EXPECT_EQ(one.microseconds(), 1000);
  EXPECT_EQ(two.microseconds(), 2000);
}

TEST_F(GpuTimes, LimitsAreWhatCopiesAndProductsReach) {
  fl::testing::offerProducts(true);
  const GpuLimits limits = measureLimits(1 << 20, 8, 1);
  fl::testing::offerProducts(false);
  EXPECT_DOUBLE_EQ(limits.copyRate, 2. * (1 << 20) / 1000);
  EXPECT_DOUBLE_EQ(limits.productRate, 2. * 8 * 8 * 8 / 1000);
  const auto limit = [&](int64_t read, int64_t written, double operations) {
    return limitOf({"", {}, read, written, operations}, limits);
  };
  EXPECT_DOUBLE_EQ(limit(1 << 20, 1 << 20, 0).get<double>(), 1000);
  EXPECT_DOUBLE_EQ(limit(0, 0, 1024).get<double>(), 1000);
  EXPECT_TRUE(limit(0, 0, 0).is_null());
}

TEST_F(GpuTimes, RowsSayWhatTheGpuReachesAndAPlanCosts) {
  const std::vector<Json> rows = rowsOfGpu({2000, 3000}, 1);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].dump(),
            R"({"bench":"gpu","case":"a copy on the GPU","unit":"GB/s","threads":1,"ours":2.0,)"
            R"("eager":null,"limit":null,"peers":{}})");
  EXPECT_EQ(rows[1]["ours"], 3.0);
  EXPECT_EQ(rows[2]["case"], "a replay of 1 steps of 16x16");
  EXPECT_GE(rows[2]["ours"], 1000);
  EXPECT_GT(gpu.counts().graphLaunches, 0u);  // of 16 kernels
}

TEST_F(GpuTimes, AttentionIsCudnnsGoingBothWays) {
  fl::testing::offerConvolutions(true);
  for (const bool hasGradients : {false, true}) {
    const Workload workload = attentionOf(64, 1, /*isMasked=*/!hasGradients, hasGradients);
    EXPECT_EQ(workload.name, hasGradients ? "attention, bf16, 64, and its gradients"
                                          : "attention, bf16, 64, causal");
    std::function<void()> call = workload.make();
    sync();
    fl::testing::takePlansRun();
    for (int i = 0; i < 2; ++i) call();
    sync();
    EXPECT_EQ(fl::testing::takePlansRun().size(), hasGradients ? 6u : 2u);
  }
  fl::testing::offerConvolutions(false);
}

TEST_F(GpuTimes, CasesHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Workload& workload : gpuCases()) {
    EXPECT_TRUE(names.insert(workload.name).second) << workload.name;
  }
  EXPECT_TRUE(names.contains("softmax, 16384x4096"));
  EXPECT_TRUE(names.contains("attention, bf16, 2048, causal, and its gradients"));
  EXPECT_TRUE(names.contains("LSTM of 64 steps, 2 x 512, and gradients"));
}

}  // namespace
}  // namespace fl::bench
