// Fusion by measuring: what is split, what is asked for once, and that results stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "fl/base/Flags.h"
#include "fl/ir/Text.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/plans/Tuner.h"
#include "fl/runtime/Device.h"
#include "fl/tensor/TensorBase.h"
#include "tests/fuzz/RandomProgram.h"

namespace fl::plans {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;

// Sums of rows, views, a constant, a value that two kernels read.
constexpr const char* kSoftmax = R"(graph @softmax(%p0: f32[40,30], %p1: f32[30,1]) {
  %0 = transpose %p0 {axes=[1,0]} : f32[30,40]
  %1 = add %0, %p1 : f32[30,40]
  %2 = amax %1 {keepDims=1, axes=[1]} : f32[30,1]
  %3 = sub %1, %2 : f32[30,40]
  %4 = exp %3 : f32[30,40]
  %5 = sum %4 {keepDims=1, axes=[1]} : f32[30,1]
  %6 = div %4, %5 : f32[30,40]
  %7 = sum %6 {keepDims=1, axes=[0]} : f32[1,40]
  return %6, %7
}
)";
constexpr const char* kChain = R"(graph @chain(%p0: f32[1000], %p1: number f32) {
  %0 = add %p0, %p1 : f32[1000]
  %1 = exp %0 : f32[1000]
  %2 = sin %1 : f32[1000]
  %3 = mul %2, %p0 : f32[1000]
  return %3
}
)";

size_t operatorsOf(const ir::Graph& graph) {
  size_t count = 0;
  for (const ir::Node& node : graph.nodes()) count += ir::opKind(node.op) != ir::Kind::View;
  return count;
}

const codegen::CompileOptions kOptions = {.lowering = ir::Lowering::Kernels, .verify = true};

// How many steps the schedule of a graph has when kernels of more than `most` operators are slow;
// the sizes that were asked for are added to `asked`.
size_t stepsWith(const char* text, size_t most, std::multiset<size_t>* asked) {
  Tuner tuner(
      [&](const ir::Graph& graph) {
        asked->insert(operatorsOf(graph));
        EXPECT_FALSE(graph.results().empty());
        verify(graph);
        return operatorsOf(graph) > most ? 2 : 0.5;
      },
      nullptr, "");
  return tuner.compile(ir::parseGraph(text), kOptions).schedule.steps.size();
}

TEST(Tuner, WhatIsFasterTogetherStays) {
  std::multiset<size_t> asked;
  EXPECT_EQ(stepsWith(kChain, 4, &asked), 1u);
  EXPECT_EQ(asked, std::multiset<size_t>{4});
}

TEST(Tuner, WhatIsSlowerTogetherIsSplitAndItsPartsAreMeasured) {
  std::multiset<size_t> asked;
  EXPECT_EQ(stepsWith(kChain, 1, &asked), 4u);
  EXPECT_THAT(asked, Each(AllOf(Ge(2u), Le(4u))));
  EXPECT_EQ(asked.count(4), 1u);
  asked.clear();
  EXPECT_EQ(stepsWith(kChain, 2, &asked), 2u);
}

TEST(Tuner, RowsViewsAndWhatIsComputedAgainAreSplit) {
  std::multiset<size_t> asked;
  const size_t whole = codegen::compile(ir::parseGraph(kSoftmax), kOptions).schedule.steps.size();
  EXPECT_EQ(stepsWith(kSoftmax, 100, &asked), whole);
  // Both sums compute the exponentials again, which are in no kernel of their own.
  EXPECT_EQ(whole, 4u);
  EXPECT_EQ(asked, (std::multiset<size_t>{3, 4}));
  asked.clear();
  EXPECT_EQ(stepsWith(kSoftmax, 1, &asked), 7u);
}

TEST(Tuner, ALimitIsNotReached) {
  int asked = 0;
  const auto steps = [&](double ratio) {
    Tuner tuner([&](const ir::Graph&) { return ++asked, ratio; }, nullptr, "");
    return tuner.compile(ir::parseGraph(kChain), kOptions).schedule.steps.size();
  };
  EXPECT_EQ(steps(kMostRatio), 1u);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(steps(kMostRatio + 0.01), 4u);
}

TEST(Tuner, WhatIsDecidedIsKept) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "fusions";
  std::filesystem::remove_all(folder);
  int asked = 0;
  const auto steps = [&](const char* key, bool twice = false) {
    Tuner tuner([&](const ir::Graph&) { return ++asked, 2; },
                std::make_unique<runtime::Store>(folder, 1 << 20), key);
    if (twice) tuner.compile(ir::parseGraph(kChain), kOptions);
    return tuner.compile(ir::parseGraph(kChain), kOptions).schedule.steps.size();
  };
  EXPECT_EQ(steps("2 threads\n", /*twice=*/true), 4u);
  const int first = asked;
  EXPECT_GT(first, 0);
  EXPECT_EQ(steps("2 threads\n"), 4u);
  EXPECT_EQ(asked, first);
  EXPECT_EQ(steps("3 threads\n"), 4u);
  EXPECT_EQ(asked, 2 * first);
}

// What was not measured is fused, and asked for again by the next process.
TEST(Tuner, WhatIsNotMeasuredIsNotKept) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "none";
  std::filesystem::remove_all(folder);
  int asked = 0;
  for (int process = 1; process <= 2; ++process) {
    Tuner tuner([&](const ir::Graph&) { return ++asked, 0; },
                std::make_unique<runtime::Store>(folder, 1 << 20), "");
    EXPECT_EQ(tuner.compile(ir::parseGraph(kChain), kOptions).schedule.steps.size(), 1u);
    EXPECT_EQ(asked, process);
  }
}

class TunerMeasures : public ::testing::Test {
 protected:
  const std::unique_ptr<runtime::Device> device = runtime::makeDevice("cpu");
  runtime::KernelCache cache;
};

TEST_F(TunerMeasures, WithoutCodeNothing) {
  EXPECT_EQ(measureOn(*device, &cache, [](const auto&) {})(ir::parseGraph(kChain)), 0);
}

TEST(TunedBackend, MeasuresAndGivesTheSameBits) {
  const auto cacheFolder = std::filesystem::path(::testing::TempDir()) / "tuned";
  std::filesystem::remove_all(cacheFolder);
  flags().cacheFolder = cacheFolder;
  flags().tune = "1";
  const BackendRegistration registration("tuned", makeLazyBackend);
  const auto run = [](const std::string& backend, uint64_t seed) {
    const BackendScope scope(backend);
    std::vector<std::string> bytes;
    for (const testing::HostValue& value : testing::RandomProgram({.seed = seed}).run()) {
      bytes.push_back(value.bytes);
    }
    return bytes;
  };
  for (uint64_t seed = 1; seed <= 3; ++seed) EXPECT_EQ(run("tuned", seed), run("lazy", seed));
  const std::filesystem::directory_iterator kept(cacheFolder / runtime::kFusions), end;
  EXPECT_GE(std::distance(kept, end), 10);
}

}  // namespace
}  // namespace fl::plans
