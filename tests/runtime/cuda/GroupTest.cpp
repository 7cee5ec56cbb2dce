// Neighbouring launches of one map that need nothing of one another are one launch of the device
// `cuda`, here on a GPU that is none (FakeGpu.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "fl/codegen/cuda/Emitter.h"
#include "fl/fl.h"
#include "fl/kernel/cuda/Launch.h"
#include "fl/lazy/Compile.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/MemoryManager.h"
#include "tests/ErrorOf.h"
#include "tests/runtime/cuda/FakeGpu.h"

namespace fl::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::MatchesRegex;
using ::testing::Pair;
using Floats = std::vector<float>;

constexpr char kKernels[] = R"(kernel @double rank=1 reduced=[] {
  operand input f32 [1]
  operand output f32 [1]
  %0 = load 0 : f32
  %1 = add %0, %0 : f32
  stage { store 1 %1 }
}
kernel @negative rank=1 reduced=[] {
  operand input f32 [1]
  operand output f32 [1]
  %0 = load 0 : f32
  %1 = negative %0 : f32
  stage { store 1 %1 }
}
)";

// A plan of launches of those kernels, each {kernel, elements, from, to}.
struct Step {
  int kernel, elements;
  std::string from, to;
};
std::string textOf(const std::vector<int>& parameters, const std::vector<int>& outputs,
                   const std::vector<Step>& steps, const std::string& temporaries = "") {
  std::string text = "schedule @s arena=128 bound=128 {\n";
  for (int elements : parameters) text += detail::concat("  parameter f32[", elements, "]\n");
  for (int elements : outputs) text += detail::concat("  output f32[", elements, "]\n");
  text += temporaries + kKernels;
  for (const auto& [kernel, elements, from, to] : steps) {
    text += detail::concat("  launch ", kernel, " extents=[", elements, "] operands(", from,
                           "+0[1], ", to, "+0[1]) numbers=[]\n");
  }
  return text + "}";
}

struct StepRanges final : runtime::StepObserver {
  void afterSteps(size_t begin, size_t end, const runtime::StepMemory&) override {
    ranges.emplace_back(begin, end);
  }
  std::vector<std::pair<size_t, size_t>> ranges;
};

class CudaGroups : public ::testing::Test {
 protected:
  CudaGroups() { gpu_.reset(); }
  ~CudaGroups() override { EXPECT_THAT(gpu_.misuse(), ElementsAre()); }

  void load(const std::string& text) { plan_ = device_->load(ir::parseSchedule(text), &cache_); }
  // Gives the kernels their code; returns for how many launches each is.
  std::vector<int> compileKernels() {
    std::vector<int> launches;
    for (const runtime::DeviceKernelPtr& kernel : plan_->kernels()) {
      launches.push_back(kernel->launches());
      kernel->setArtifact(
          {"k", codegen::cuda::emitCuda({{"k", &kernel->kernel(), kernel->launches()}})});
    }
    return launches;
  }
  // Parameter i has the elements i + 1, i + 2 and so on.
  std::vector<Floats> run() {
    const ir::Schedule& schedule = plan_->schedule();
    std::vector<MemoryBlockPtr> buffers;
    for (const auto& parameter : schedule.parameters) {
      Floats values(parameter.type.shape.elements());
      std::iota(values.begin(), values.end(), static_cast<float>(buffers.size() + 1));
      buffers.push_back(runtime::makeBlock(values.data(), values.size() * sizeof(float)));
    }
    const auto outputs = plan_->run(buffers, std::vector<Number>(buffers.size()));
    std::vector<Floats> results;
    for (const MemoryBlockPtr& output : outputs) {
      const MemoryBlockPtr onHost = output->onHost();
      const auto* begin = static_cast<const float*>(onHost->data());
      results.emplace_back(begin, begin + onHost->bytes() / sizeof(float));
    }
    return results;
  }
  // How many launches a run asks for.
  size_t launchesOfRun() {
    const size_t before = gpu_.counts().launches;
    const uint64_t counted = runtime::counters().kernelLaunches;
    run();
    const size_t launches = gpu_.counts().launches - before;
    EXPECT_EQ(runtime::counters().kernelLaunches - counted, launches);
    return launches;
  }

  FakeGpu& gpu_ = FakeGpu::install();
  const std::unique_ptr<runtime::Device> device_ = runtime::makeDevice("cuda");
  runtime::KernelCache cache_;
  std::unique_ptr<runtime::LoadedSchedule> plan_;
};

Floats counted(float first, float step, size_t elements) {
  Floats values(elements);
  for (size_t i = 0; i < elements; ++i) values[i] = first + step * static_cast<float>(i);
  return values;
}

TEST_F(CudaGroups, SizesMayDiffer) {
  load(textOf({5, 70000, 1}, {5, 70000, 1},
              {{0, 5, "p0", "o0"}, {0, 70000, "p1", "o1"}, {0, 1, "p2", "o2"}}));
  EXPECT_THAT(compileKernels(), ElementsAre(4));
  EXPECT_EQ(launchesOfRun(), 1u);
  EXPECT_THAT(run(), ElementsAre(counted(2, 2, 5), counted(4, 2, 70000), counted(6, 2, 1)));
}

// The parts that blocks make of a reduction are a temporary of the plan, too.
TEST_F(CudaGroups, PlansHoldThePartsOfReductions) {
  load(R"(schedule @s arena=0 bound=0 {
  parameter f32[1000000]
  output f32[1]
kernel @k rank=1 reduced=[0] {
  operand input f32 [1]
  operand output f32 [0]
  %0 = load 0 : f32
  %1 = total 0 : f32
  sweep { reduce sum %0 }
  stage { store 1 %1 }
}
  launch 0 extents=[1000000] operands(p0+0[1], o0+0[0]) numbers=[]
})");
  const ir::Schedule& schedule = plan_->schedule();
  const int64_t extent = 1000000;
  const size_t bytes = ir::cuda::launchOf(schedule.kernels[0], &extent).partBytes;
  EXPECT_GT(bytes, 64u);
  EXPECT_EQ(schedule.temporaries, (std::vector<ir::Temporary>{{(bytes + 63) / 64 * 64, 0, 0, 0}}));
  EXPECT_EQ(schedule.arenaBytes, (bytes + 63) / 64 * 64);
}

// An output may be in the memory of a parameter, which the last launch reads, too.
TEST_F(CudaGroups, OutputsInPlaceKeepLaunchesApart) {
  load(textOf({9}, {9, 9}, {{0, 9, "p0", "o0"}, {0, 9, "p0", "o1"}}));
  EXPECT_THAT(compileKernels(), ElementsAre(1));
  EXPECT_EQ(launchesOfRun(), 2u);
}

TEST_F(CudaGroups, LaunchesThatAreNotApartStayTwo) {
  load(textOf({9, 9}, {9, 9, 9}, {{0, 9, "p0", "o0"}, {0, 9, "p1", "o1"}, {0, 9, "o0", "o2"}}));
  EXPECT_THAT(compileKernels(), ElementsAre(2, 1));
  EXPECT_EQ(launchesOfRun(), 2u);
  EXPECT_THAT(run(), ElementsAre(counted(2, 2, 9), counted(4, 2, 9), counted(4, 4, 9)));
}

// What the first reads is dead before the second writes to its place.
TEST_F(CudaGroups, TemporariesOfOnePlaceKeepLaunchesApart) {
  load(textOf({8}, {8},
              {{0, 8, "p0", "t0"}, {1, 8, "t0", "t1"}, {1, 8, "p0", "t2"}, {0, 8, "t1", "o0"}},
              "  temporary bytes=64 first=0 last=1 offset=0\n"
              "  temporary bytes=64 first=1 last=3 offset=64\n"
              "  temporary bytes=64 first=2 last=2 offset=0\n"));
  EXPECT_THAT(compileKernels(), ElementsAre(1, 1));
  EXPECT_EQ(launchesOfRun(), 4u);
  EXPECT_THAT(run(), ElementsAre(counted(-4, -4, 8)));
}

TEST_F(CudaGroups, OtherKernelsEndThem) {
  load(textOf({2}, {2, 2, 2}, {{0, 2, "p0", "o0"}, {1, 2, "p0", "o1"}, {0, 2, "p0", "o2"}}));
  EXPECT_THAT(compileKernels(), ElementsAre(1, 1));
  EXPECT_EQ(launchesOfRun(), 3u);
}

// Parameters take 32,764 bytes: 512 launches of three words and their first blocks.
TEST_F(CudaGroups, MoreThanFitAreSeveral) {
  std::vector<Step> steps;
  for (int i = 0; i < 520; ++i) {
    steps.push_back({0, 3, detail::concat("p", i), detail::concat("o", i)});
  }
  load(textOf(std::vector<int>(steps.size(), 3), std::vector<int>(steps.size(), 3), steps));
  EXPECT_THAT(compileKernels(), ElementsAre(512, 8));
  EXPECT_EQ(launchesOfRun(), 2u);
  EXPECT_EQ(run()[511], counted(1024, 2, 3));
  EXPECT_EQ(run()[519], counted(1040, 2, 3));
}

TEST_F(CudaGroups, ObserversSeeThemTogether) {
  load(textOf({2, 2}, {2, 2, 2}, {{0, 2, "p0", "o0"}, {0, 2, "p1", "o1"}, {1, 2, "p0", "o2"}}));
  compileKernels();
  StepRanges observer;
  runtime::stepObserver() = &observer;
  run();
  runtime::stepObserver() = nullptr;
  EXPECT_THAT(observer.ranges, ElementsAre(Pair(0, 2), Pair(2, 3)));
}

TEST_F(CudaGroups, WithoutCodeTheyRunOnTheHostOneByOne) {
  load(textOf({2, 2}, {2, 2}, {{0, 2, "p0", "o0"}, {0, 2, "p1", "o1"}}));
  const uint64_t before = runtime::counters().hostCalls;
  EXPECT_THAT(run(), ElementsAre(Floats{2, 4}, Floats{4, 6}));
  EXPECT_EQ(runtime::counters().hostCalls - before, 2u);
  EXPECT_EQ(gpu_.counts().launches, 0u);
}

// A group is a node of the graph; where memory is another's than before, its words are set.
TEST_F(CudaGroups, AreNodesOfGraphs) {
  if (runtime::poisons()) GTEST_SKIP() << "it comes between the steps of a plan";
  load(textOf({4, 300}, {4, 300, 4, 4},
              {{0, 4, "p0", "o0"}, {0, 300, "p1", "o1"}, {1, 4, "o0", "o2"}, {0, 4, "o2", "o3"}}));
  EXPECT_THAT(compileKernels(), ElementsAre(2, 1, 1));
  EXPECT_EQ(launchesOfRun(), 3u);
  const auto expected =
      ElementsAre(counted(2, 2, 4), counted(4, 2, 300), counted(-2, -2, 4), counted(-4, -4, 4));
  const uint64_t before = runtime::counters().kernelLaunches;
  EXPECT_THAT(run(), expected);
  EXPECT_EQ(gpu_.counts().graphLaunches, 1u);
  const std::vector<MemoryBlockPtr> taken = {device_->memory().allocate(16, {}),
                                             device_->memory().allocate(1200, {})};
  EXPECT_THAT(run(), expected);
  EXPECT_EQ(gpu_.counts().graphs, 1u);
  EXPECT_GE(gpu_.counts().changedNodes, 1u);
  EXPECT_LE(gpu_.counts().changedNodes, 3u);
  EXPECT_EQ(runtime::counters().kernelLaunches - before, 6u);
}

// As the lazy backend makes them.
TEST_F(CudaGroups, AnOptimizersUpdatesAreOneLaunch) {
  const auto train = [&](const char* device) {
    const BackendScope scope("lazy", device);
    std::vector<Variable> parameters;
    for (Dim i = 0; i < 30; ++i) {
      const Tensor elements = arange({20 + 40 * i}) / 64;
      parameters.emplace_back(elements + 1, true);
      parameters.back().addGrad(Variable(elements - 2, false));
    }
    sync();
    AdamOptimizer optimizer(parameters, 1e-2);
    for (int step = 0; step < 3; ++step) {
      const size_t before = gpu_.counts().launches;
      optimizer.step();
      sync();
      if (step == 0 || device == std::string("cpu")) continue;  // the first makes its state
      EXPECT_EQ(gpu_.counts().launches - before, 1u) << step;
    }
    std::vector<Floats> values;
    for (const Variable& each : parameters) {
      values.push_back(each.tensor().toHostVector<float>());
    }
    return values;
  };
  EXPECT_EQ(train("cuda"), train("cpu"));
}

TEST_F(CudaGroups, ALaunchThatFailsNamesItsOperatorsAndFirstLine) {
  const BackendScope scope("lazy", "cuda");
  const Tensor x = arange({40}), y = arange({50});
  sync();
  const Tensor first = x * 2 + 1;
  const Tensor second = y * 2 + 1;
  gpu_.failCall("cuLaunchKernel", CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(test::errorOf<std::runtime_error>([] { sync(); }),
              MatchesRegex("CUDA: a launch of map mul.add [0-9a-f]{8}: told to fail "
                           ".CUDA_ERROR_OF_A_TEST., at tests/runtime/cuda/GroupTest.cpp:" +
                           std::to_string(__LINE__ - 6)));
  gpu_.reset();
  sync();
  EXPECT_EQ(gpu_.counts().launches, 1u);
  EXPECT_EQ(first.toHostVector<float>(), counted(1, 2, 40));
  EXPECT_EQ(second.toHostVector<float>(), counted(1, 2, 50));
}

}  // namespace
}  // namespace fl::testing
