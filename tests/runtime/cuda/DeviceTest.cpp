// The device `cuda` on a GPU that is none (FakeGpu.h): the order of its work, its memory, its
// errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <optional>
#include <thread>

#include "fl/base/Flags.h"
#include "fl/fl.h"
#include "fl/lazy/Compile.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/runtime/cuda/Memory.h"
#include "tests/ErrorOf.h"
#include "tests/runtime/cuda/FakeGpu.h"

namespace fl::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

std::vector<float> floats(const Tensor& tensor) { return tensor.toHostVector<float>(); }
Tensor vectorOf(std::vector<float> values) { return Tensor::fromVector(values); }

std::string here(int line) {
  return "at tests/runtime/cuda/DeviceTest.cpp:" + std::to_string(line);
}

class CudaDevice : public ::testing::Test {
 protected:
  CudaDevice() {
    gpu.reset();
    scope_.emplace("lazy", "cuda");
    hostCallsBefore_ = runtime::counters().hostCalls;
  }
  ~CudaDevice() override { EXPECT_THAT(gpu.misuse(), ElementsAre()); }

  uint64_t hostCalls() const { return runtime::counters().hostCalls - hostCallsBefore_; }

  FakeGpu& gpu = FakeGpu::install();

 private:
  std::optional<BackendScope> scope_;
  uint64_t hostCallsBefore_ = 0;
};

// What the child had of its parent goes without a word to the driver.
TEST_F(CudaDevice, AChildOfForkIsToldThatItHasNoGpu) {
  std::optional<Tensor> x = vectorOf({1, 2});
  EXPECT_THAT(floats(*x + 1), ElementsAre(2, 3));
  const auto inChild = [&] {
    std::cerr << test::errorOf<std::runtime_error>([&] { floats(*x * 3); }) << "\n"
              << test::errorOf<std::runtime_error>([&] { x->value()->data()->onHost(); }) << "\n";
    x.reset();
    std::_Exit(gpu.misuse().empty() ? 0 : 1);
  };
  const std::string words = "CUDA: a child of fork\\(\\) cannot use the GPU of its parent; .*";
  EXPECT_EXIT(inChild(), ::testing::ExitedWithCode(0), words + "\n" + words);
  EXPECT_THAT(floats(*x), ElementsAre(1, 2));
}

TEST_F(CudaDevice, WorkIsPutIntoTheStreamAndDoneWhenItIsWaitedFor) {
  const Tensor x = vectorOf({1, 2, 3, 4});
  const Tensor y = x * 2 + 1, z = exp(y);
  EXPECT_EQ(gpu.counts().launches, 0u);
  y.value()->data();  // computes it
  EXPECT_EQ(gpu.counts().launches, 1u);
  EXPECT_THAT(gpu.done(), ElementsAre());
  EXPECT_THAT(floats(y), ElementsAre(3, 5, 7, 9));
  std::vector<std::string> done = gpu.done();
  if (runtime::poisons()) std::erase(done, "fill");
  EXPECT_THAT(done, ElementsAre("upload", "event", "launch", "download", "event"));
  EXPECT_EQ(gpu.counts().launches, 1u);
  EXPECT_EQ(gpu.counts().bytesUp, 16u);
  EXPECT_EQ(gpu.counts().bytesDown, 16u);
}

// A plan's steps, of which none waits, and no graph, whose time would be that of its start.
TEST_F(CudaDevice, AProfileWaitsForEachStep) {
  const Tensor x = vectorOf({1, 2, 3, 4});
  const auto waitsOfARun = [&] {
    const size_t before = gpu.counts().waits;
    Tensor rows = sum(x * x, {0}), all = tanh(x * sum(x, {0}));
    eval(all), eval(rows);
    (rows + all).value()->data();
    return gpu.counts().waits - before;
  };
  EXPECT_EQ(waitsOfARun(), 0u);
  ::testing::internal::CaptureStderr();
  startProfile(::testing::TempDir() + "/trace.json");
  const size_t launches = gpu.counts().launches;
  const size_t waits = waitsOfARun();
  stopProfile();
  EXPECT_GE(gpu.counts().launches, launches + 3);
  EXPECT_EQ(waits, gpu.counts().launches - launches);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("tanh"));
}

TEST_F(CudaDevice, SyncWaitsForTheGpu) {
  const Tensor y = vectorOf({1, 2}) + 1;
  sync();
  EXPECT_EQ(gpu.counts().launchesDone, 1u);
  EXPECT_EQ(gpu.counts().bytesDown, 0u);
}

// Larger than all slots of pinned memory together.
TEST_F(CudaDevice, LargeCopiesGoThroughPinnedMemoryInParts) {
  std::vector<float> values(9 << 20);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 65536);
  const Tensor x = Tensor::fromVector(values);
  EXPECT_EQ(floats(x), values);
  EXPECT_EQ(gpu.counts().bytesUp, values.size() * 4);
  EXPECT_EQ(gpu.counts().bytesDown, values.size() * 4);
}

TEST_F(CudaDevice, AStepKeepsItsMemory) {
  Tensor x = vectorOf(std::vector<float>(1 << 18, 1));
  const auto step = [&] {
    x = tanh(x * 0.5) + amax(x, {0}, /*keepDims=*/true);
    return x(0).scalar<float>();
  };
  for (int i = 0; i < 4; ++i) step();
  const size_t allocations = gpu.counts().allocations, live = gpu.liveBlocks();
  for (int i = 0; i < 8; ++i) step();
  EXPECT_EQ(gpu.counts().allocations, allocations);
  EXPECT_EQ(gpu.liveBlocks(), live);
}

// A wait unmaps nothing. What the manager keeps goes back, in the stream, when there is no other
// memory.
TEST_F(CudaDevice, KeptMemoryIsGivenBackWhenThereIsNoOther) {
  constexpr size_t kBytes = 24 << 20;
  {
    const Tensor x = vectorOf(std::vector<float>(kBytes / 4, 1)) + 1;
    sync();
  }
  gpu.setMemory(3 * kBytes);
  const Tensor y = vectorOf(std::vector<float>(kBytes / 2, 3));
  EXPECT_EQ(floats(y)[5], 3);
  EXPECT_THAT(gpu.done(), ::testing::Contains("free"));
  EXPECT_EQ(gpu.keptBytes(), std::numeric_limits<size_t>::max());
}

TEST_F(CudaDevice, SaysWhatItLacksMemoryFor) {
  gpu.setMemory(1 << 20);
  const std::vector<float> values(1 << 20);
  const std::string error = test::errorOf<std::bad_alloc>([&] { Tensor::fromVector(values); });
  EXPECT_THAT(error, StartsWith("memory of the GPU: 4194304 bytes cannot be had, " +
                                here(__LINE__ - 2) + "\nThey are for data"));
  EXPECT_THAT(error,
              HasSubstr(" " + std::to_string((1 << 20) - gpu.liveBytes()) + " free in the system"));
}

TEST_F(CudaDevice, ALaunchThatFailsNamesItsOperatorsAndLine) {
  const Tensor x = vectorOf({1, 2});
  const Tensor y = exp(x) + 1;
  gpu.failCall("cuLaunchKernel", CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(test::errorOf<std::runtime_error>([&] { floats(y); }),
              MatchesRegex("CUDA: a launch of map exp.add [0-9a-f]{8}: told to fail "
                           ".CUDA_ERROR_OF_A_TEST., " +
                           here(__LINE__ - 5)));
  gpu.reset();
  EXPECT_FLOAT_EQ(floats(y)[0], std::exp(1.0f) + 1);  // it may be tried again
}

// When the GPU finds it, the call is long over.
TEST_F(CudaDevice, WhatFailsLaterNamesTheLaunchesSinceTheLastWait) {
  const Tensor x = vectorOf({1, 2});
  const Tensor first = x + 1;
  EXPECT_EQ(floats(first)[0], 2);  // and is no suspect any more
  const Tensor y = exp(x) * 3;
  gpu.failLater("cuLaunchKernel", CUDA_ERROR_ILLEGAL_ADDRESS);
  y.value()->data();
  EXPECT_THAT(test::errorOf<std::runtime_error>([&] { floats(y); }),
              MatchesRegex("CUDA: told to fail .CUDA_ERROR_OF_A_TEST., in one of these launches or "
                           "what came among or after them:\n  map exp.mul [0-9a-f]{8} " +
                           here(__LINE__ - 6)));
  const auto isOfThem = StartsWith("CUDA: told to fail (CUDA_ERROR_OF_A_TEST), in one of ");
  EXPECT_THAT(test::errorOf<std::runtime_error>([] { sync(); }), isOfThem);
  // A launch that is given the error is no suspect.
  EXPECT_THAT(test::errorOf<std::runtime_error>([&] { (x + 1).value()->data(); }), isOfThem);
  gpu.reset();
}

TEST_F(CudaDevice, WhatFailsLaterCountsTheLaunchesBeforeThose) {
  const Tensor x = vectorOf({1, 2});
  sync();
  const auto launch = [&] { (x + 1).value()->data(); };
  gpu.failLater("cuLaunchKernel", CUDA_ERROR_LAUNCH_FAILED);
  for (int i = 0; i < 20; ++i) launch();
  const std::string error = test::errorOf<std::runtime_error>([] { sync(); });
  EXPECT_THAT(error, HasSubstr(" after them:\n  4 launches before these\n  map add "));
  EXPECT_EQ(std::ranges::count(error, '\n'), 1 + 16);
  gpu.reset();
}

// As when a static tensor goes after the driver, or the GPU has met with an error.
TEST_F(CudaDevice, MemoryIsGivenBackWithoutAWord) {
  std::optional<Tensor> x = vectorOf(std::vector<float>(1 << 20, 1)) + 1;
  sync();
  gpu.failCall("cuCtxSetCurrent", CUDA_ERROR_DEINITIALIZED);
  std::thread([&] {
    x.reset();
    runtime::cuda::Memory::of(runtime::cuda::Context::of(0)).fill(nullptr, 1, 1);
  }).join();
  gpu.reset();
}

// Whose owner may write to it at once, in a stream of its own.
TEST_F(CudaDevice, MemoryOfTheGpuIsReadWhenFromBufferReturns) {
  const Tensor x = vectorOf({1, 2, 3});
  const auto* memory = static_cast<const float*>(x.value()->data()->data());
  sync();
  const size_t before = gpu.done().size();
  const Tensor y = Tensor::fromBuffer({3}, memory, Location::Device);
  EXPECT_GT(gpu.done().size(), before);
  EXPECT_THAT(floats(y), ElementsAre(1, 2, 3));
}

TEST_F(CudaDevice, CopiesThatFailSaySo) {
  gpu.failCall("cuMemcpyHtoDAsync", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(test::errorOf<std::runtime_error>([] { vectorOf({1, 2, 3, 4}); }).substr(0, 70),
            "CUDA: a copy of 16 bytes to the GPU: told to fail (CUDA_ERROR_OF_A_TES");
  gpu.reset();
  const Tensor x = vectorOf({1, 2});
  gpu.failCall("cuMemcpyDtoHAsync", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(test::errorOf<std::runtime_error>([&] { x.toHostVector<float>(); }),
            "CUDA: a copy of 8 bytes from the GPU: told to fail (CUDA_ERROR_OF_A_TEST), " +
                here(__LINE__ - 2));
  gpu.reset();
}

// Its words, and the line, are those of the CPU.
TEST_F(CudaDevice, BadIndicesComeBackAsTheUsersError) {
  const Tensor table = vectorOf({10, 20, 30});
  const auto lookUp = [](const Tensor& table, int index) {
    const Tensor found = table(Tensor::fromVector(std::vector<int>{0, index}));
    return floats(found * 2)[1];
  };
  EXPECT_EQ(lookUp(table, 2), 60);
  const std::string error = test::errorOf([&] { lookUp(table, 7); });
  std::string onCpu;
  {
    const BackendScope cpu("lazy", "cpu");
    onCpu = test::errorOf([&] { lookUp(vectorOf({10, 20, 30}), 7); });
  }
  EXPECT_EQ(error, onCpu);
  EXPECT_THAT(error, HasSubstr("7"));
  EXPECT_EQ(lookUp(table, 1), 40);
}

TEST_F(CudaDevice, ScattersAreLaunches) {
  const Tensor x = vectorOf({1, 2, 3}), y = vectorOf({10, 20, 30});
  const Tensor index = Tensor::fromVector(std::vector<int>{0, 2, 0});
  for (const float factor : {1.0f, 2.0f}) {
    Tensor sums = x * factor, last = sums;
    sums(index) += y;
    last(index) = y;
    EXPECT_THAT(floats(sums + 1), ElementsAre(41 + factor, 1 + 2 * factor, 21 + 3 * factor));
    EXPECT_THAT(floats(last), ElementsAre(30, 2 * factor, 20));
  }
  EXPECT_THAT(floats(x), ElementsAre(1, 2, 3));
  EXPECT_EQ(hostCalls(), 0u);
}

// As above; a lookup in the same plan reports, too.
TEST_F(CudaDevice, BadIndicesOfScattersComeBackAsTheUsersError) {
  const auto write = [](int read, int written) {
    const Tensor found = vectorOf({10, 20, 30})(Tensor::fromVector(std::vector<int>{read, 0}));
    Tensor x = found * 1;
    x(Tensor::fromVector(std::vector<int>{written, 0, 0})) += vectorOf({1, 2, 3});
    return floats(x * 2)[0];
  };
  const auto errors = [&] {
    return std::array{test::errorOf([&] { write(1, 2); }), test::errorOf([&] { write(1, -7); }),
                      test::errorOf([&] { write(8, 1); })};
  };
  const auto onGpu = errors();
  EXPECT_THAT(onGpu[0], HasSubstr("2 is out of range"));
  EXPECT_EQ(hostCalls(), 0u);
  EXPECT_EQ(write(1, 0), 52);
  const BackendScope cpu("lazy", "cpu");
  EXPECT_EQ(errors(), onGpu);
}

// As a gradient of an embedding does: what the lookup has found good is not waited for again.
TEST_F(CudaDevice, ReportsSetOutBehindTheFirstLookupOfAnIndex) {
  const auto sums = [](std::vector<int> places) {
    const Tensor index = Tensor::fromVector(places);
    const Tensor found = vectorOf({10, 20, 30})(index);
    Tensor x = fl::full({3}, 1.f);
    x(index) += found;
    return floats(x * 2);
  };
  EXPECT_THAT(sums({0, 2, 2}), ElementsAre(22, 2, 122));
  const std::vector<std::string> done = gpu.done();
  const auto isDownload = [](const std::string& name) { return name == "download"; };
  const auto first = std::ranges::find_if(done, isDownload);
  // The index and the lookup; the scatter and the product.
  EXPECT_EQ(std::count(done.begin(), first, "launch"), 2) << ::testing::PrintToString(done);
  EXPECT_EQ(std::count(first, done.end(), "launch"), 2);
  EXPECT_EQ(std::ranges::count_if(done, isDownload), 2);  // and the result
  const std::string error = test::errorOf([&] { sums({0, 3, 1}); });
  EXPECT_THAT(error, HasSubstr("3 is out of range"));
  EXPECT_THAT(error, HasSubstr(here(__LINE__ - 15)));
  const BackendScope cpu("lazy", "cpu");
  EXPECT_EQ(test::errorOf([&] { sums({0, 3, 1}); }), error);
  EXPECT_EQ(hostCalls(), 0u);
}

// What is looked up a second time fails in the name of the first, not of the plan's first lookup.
TEST_F(CudaDevice, ReportsAreOfTheLookupThatFails) {
  const auto sums = [](std::vector<int> places) {
    const Tensor first = Tensor::fromVector(std::vector<int>{1, 0});
    const Tensor second = Tensor::fromVector(places);
    const Tensor third = Tensor::fromVector(std::vector<int>{2, 1, 0});
    Tensor x = fl::full({3}, 1.f), y = x;
    x(first) += vectorOf({10, 20})(first);
    const Tensor found = x(second);
    y(second) += found;
    return floats(y(third));
  };
  EXPECT_THAT(sums({0, 1, 1}), ElementsAre(1, 43, 12));
  const std::string error = test::errorOf([&] { sums({0, 3, 1}); });
  EXPECT_THAT(error, HasSubstr("3 is out of range"));
  EXPECT_THAT(error, HasSubstr(here(__LINE__ - 7)));
  EXPECT_EQ(hostCalls(), 0u);
}

// What a plan writes over is written when its lookups are known to be good.
TEST_F(CudaDevice, ABadIndexLosesNoValue) {
  const Tensor table = vectorOf({10, 20, 30});
  Tensor state = fl::full({2, 3}, 1.f);
  sync();
  auto step = compile([&](const Tensor& places) {
    const Tensor product = state * reshape(table(places), {1, 3});
    state = state + sum(product - sum(product, {1}, true), {0}, true);
  });
  const Tensor good = Tensor::fromVector<int>({3}, {0, 2, 1});
  const Tensor bad = Tensor::fromVector<int>({3}, {0, 3, 1});
  for (int i = 0; i < 4; ++i) step(good);
  const void* const memory = state.value()->data()->data();
  step(good);
  EXPECT_EQ(state.value()->data()->data(), memory);
  const std::vector<float> values = floats(state);
  EXPECT_THAT(test::errorOf([&] { step(bad); }), HasSubstr("3 is out of range"));
  EXPECT_EQ(floats(state), values);
}

TEST_F(CudaDevice, ScattersWithoutCodeRunOnTheHost) {
  const auto sums = [] {
    Tensor x = Tensor::fromVector(std::vector<short>{1, 2});
    x(Tensor::fromVector(std::vector<int>{1, 1})) += Tensor::fromVector(std::vector<short>{3, 4});
    return (x * 1).astype(dtype::f32);
  };
  gpu.failCall("cuModuleLoadData", CUDA_ERROR_INVALID_IMAGE);
  EXPECT_THAT(floats(sums()), ElementsAre(1, 9));
  EXPECT_GT(hostCalls(), 0u);
}

TEST_F(CudaDevice, WhatHasNoKernelRunsOnTheHost) {
  const Tensor x = vectorOf({3, 1, 2});
  EXPECT_THAT(floats(sort(x * 2, 0) + 1), ElementsAre(3, 5, 7));
  EXPECT_EQ(hostCalls(), 1u);
  EXPECT_EQ(gpu.counts().launches, 2u);
}

TEST_F(CudaDevice, ProductsAreKernels) {
  const Tensor x = Tensor::fromVector<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_THAT(floats(matmul(x, x)), ElementsAre(7, 10, 15, 22));
  EXPECT_EQ(hostCalls(), 0u);
}

TEST_F(CudaDevice, WithoutACompilerKernelsRunOnTheHost) {
  flags().jit = "off";
  const auto backend = makeLazyBackend("cuda");
  flags().jit = "sync";
  const BackendScope scope(*backend);
  const Tensor table = vectorOf({1, 2, 3, 4});
  EXPECT_THAT(floats(table * 2 + 1), ElementsAre(3, 5, 7, 9));
  EXPECT_EQ(hostCalls(), 1u);
  EXPECT_EQ(gpu.counts().launches, 0u);
  EXPECT_THAT(test::errorOf([&] { floats(table(Tensor::fromVector(std::vector<int>{9}))); }),
              HasSubstr("9"));
}

TEST_F(CudaDevice, EagerModeRunsOnTheHost) {
  const BackendScope scope("eager", "cuda");
  Tensor x = vectorOf({1, 2, 3, 4});
  x(range(1, 3)) = x(range(2, 4)) * 10;
  EXPECT_THAT(floats(x), ElementsAre(1, 30, 40, 4));
  EXPECT_THAT(floats(softmax(Variable(x * 0, false), 0).tensor()),
              ElementsAre(0.25, 0.25, 0.25, 0.25));
  EXPECT_EQ(gpu.counts().launches, 0u);
  EXPECT_GT(hostCalls(), 0u);
}

// The pointer is one of the GPU's, which only its kernels can use; on this one the host can, too.
TEST_F(CudaDevice, TensorsGiveTheirPointersOnTheGpu) {
  Tensor x = vectorOf({1, 2, 3});
  auto* elements = x.device<float>();
  sync();
  gpu.touch([&] { elements[1] = 20; });
  EXPECT_THAT(floats(x * 2), ElementsAre(2, 40, 6));
  x(0) = 7;
  sync();
  gpu.touch([&] { EXPECT_EQ(elements[0], 7); });
  const Tensor same = Tensor::fromBuffer({3}, elements, Location::Device);
  x.unlock();
  EXPECT_THAT(floats(x), ElementsAre(7, 20, 3));
  EXPECT_THAT(floats(same), ElementsAre(7, 20, 3));
  EXPECT_EQ(x.location(), Location::Device);
  const BackendScope cpu("lazy", "cpu");
  EXPECT_EQ(vectorOf({1}).location(), Location::Host);
}

TEST_F(CudaDevice, OtherDevicesTakeItsValuesAndItTakesTheirs) {
  const Tensor x = vectorOf({1, 2, 3}) * 2;
  const BackendScope cpu("lazy", "cpu");
  const Tensor y = x + 1, onCpu = vectorOf({1, 1, 1}) * 3;
  EXPECT_THAT(floats(y), ElementsAre(3, 5, 7));
  const BackendScope back("lazy", "cuda");
  const size_t before = gpu.counts().bytesUp;
  EXPECT_THAT(floats(onCpu + x), ElementsAre(5, 7, 9));
  EXPECT_THAT(floats(onCpu * x), ElementsAre(6, 12, 18));
  EXPECT_THAT(floats(onCpu - x), ElementsAre(1, -1, -3));
  EXPECT_EQ(gpu.counts().bytesUp - before, 24u);  // it is kept from the second time on
}

TEST_F(CudaDevice, CompiledFunctionsReplay) {
  Tensor state = vectorOf({1, 2});
  auto step = compile([&](const Tensor& x) {
    state = state * 2 + x;
    return sum(state);
  });
  float last = 0;
  for (int i = 0; i < 5; ++i) last = Tensor(step(vectorOf({1, 1}))).scalar<float>();
  EXPECT_THAT(floats(state), ElementsAre(63, 95));
  EXPECT_EQ(last, 158);
}

// Launches one by one at first, then as one graph, of which a run sets what is another than before.
TEST_F(CudaDevice, ReplaysAreGraphs) {
  const Tensor x = Tensor::fromVector<float>({2, 2}, {1, 2, 3, 4});
  const auto run = [&](float factor) {
    const FakeGpu::Counts before = gpu.counts();
    std::vector<float> sums;
    {
      const Tensor y = x * factor;
      const Tensor rows = sum(y, {0}), columns = sum(y, {1}), all = sum(exp(y - y));
      sums = {floats(rows)[1], floats(columns)[1], floats(all)[0]};
    }
    EXPECT_THAT(sums, ElementsAre(7 * factor, 6 * factor, 4));
    const FakeGpu::Counts after = gpu.counts();
    return std::array{after.launches - before.launches, after.graphs - before.graphs,
                      after.graphLaunches - before.graphLaunches,
                      after.changedNodes - before.changedNodes};
  };
  const auto first = run(1);
  EXPECT_GE(first[0], 3u);
  EXPECT_THAT(first, ElementsAre(first[0], 0, 0, 0));
  EXPECT_THAT(run(1), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(run(1), ElementsAre(0, 0, 1, 0));
  const auto other = run(2);
  EXPECT_THAT(other, ElementsAre(0, 0, 1, other[3]));
  EXPECT_GT(other[3], 0u);
}

// Blocks that share a sweep find the counters as the launch before left them, and their parts in
// the plan's memory, apart from what lookups report; one by one and in a graph.
TEST_F(CudaDevice, BlocksShareALongSweep) {
  constexpr int kElements = 150000;
  std::vector<float> values(kElements);
  std::vector<int> places(kElements);
  for (int i = 0; i < kElements; ++i) {
    values[i] = 1 / static_cast<float>(i + 1);
    places[i] = static_cast<int>(i * int64_t{7919} % kElements);
  }
  const auto sums = [&] {
    const Tensor x = Tensor::fromVector(values), index = Tensor::fromVector(places);
    auto step = compile([&](const Tensor& x) {
      const Tensor found = x(index);
      return std::vector<Tensor>{sum(found), sum(x * x), amax(x * 3, {}),
                                 sum(reshape(x * 2, {5, kElements / 5}), {1})};
    });
    std::vector<std::vector<float>> results;
    for (int i = 0; i < 3; ++i) {
      for (const Tensor& each : step(x)) results.push_back(floats(each));
    }
    return results;
  };
  const auto onGpu = sums();
  EXPECT_GE(gpu.counts().sharedSweeps, 9u);
  // Poison comes between the steps of a plan.
  EXPECT_EQ(gpu.counts().graphLaunches > 0, !runtime::poisons());
  const BackendScope cpu("lazy", "cpu");
  EXPECT_EQ(onGpu, sums());
}

TEST_F(CudaDevice, AGraphThatFailsNamesItsLineAndMayBeTriedAgain) {
  const Tensor x = Tensor::fromVector<float>({2, 2}, {1, 2, 3, 4});
  auto step = compile([](const Tensor& x) {
    return std::vector<Tensor>{sum(x, {0}), sum(x, {1}), sum(exp(x - x))};
  });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(floats(step(x)[2])[0], 4);
  EXPECT_GT(gpu.counts().graphLaunches, 0u);
  gpu.failCall("cuGraphLaunch", CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(
      test::errorOf<std::runtime_error>([&] { step(x); }),
      "CUDA: a graph of launches: told to fail (CUDA_ERROR_OF_A_TEST), " + here(__LINE__ - 6));
  gpu.reset();
  EXPECT_EQ(floats(step(x)[2])[0], 4);
}

TEST_F(CudaDevice, WhatCannotBeCapturedRunsStepByStep) {
  if (runtime::poisons()) GTEST_SKIP() << "poison comes between the steps of a plan";
  Dim columns = 11;  // for each function another plan, which no test has
  for (const char* function : {"cuStreamBeginCapture", "cuStreamGetCaptureInfo",
                               "cuStreamEndCapture", "cuGraphInstantiate"}) {
    SCOPED_TRACE(function);
    const Tensor x = Tensor::fromVector({2, columns}, std::vector<float>(2 * columns, 3));
    auto step = compile([](const Tensor& x) {
      return std::vector<Tensor>{sum(x, {0}), sum(x, {1}), sum(exp(x - x))};
    });
    floats(step(x)[2]);
    gpu.failCall(function, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(floats(step(x)[0])[1], 6);
    EXPECT_EQ(gpu.counts().graphLaunches, 0u);
    gpu.reset();
    EXPECT_EQ(floats(step(x)[1])[0], 3 * columns++);
  }
}

// Rows of 64 KiB wait in shared memory, more than launches may ask for of functions that are not
// told; in a graph, too.
TEST_F(CudaDevice, FunctionsAreToldOfTheSharedMemoryThatLaunchesAskFor) {
  constexpr Dim kLength = 16384;
  std::vector<float> values(2 * kLength);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * i % 97) / 16;
  const auto results = [&] {
    auto step = compile([](const Tensor& x) {
      return std::vector<Tensor>{softmax(Variable(x, false), 0).tensor(), sum(x, {1}), x * 2};
    });
    const Tensor x = Tensor::fromVector({kLength, 2}, values);
    for (int i = 0; i < 3; ++i) step(x);
    return floats(step(x)[0]);
  };
  const std::vector<float> onGpu = results();
  EXPECT_EQ(gpu.counts().mostSharedBytes, 4u * kLength);
  EXPECT_GT(gpu.counts().graphLaunches, 0u);
  const BackendScope cpu("lazy", "cpu");
  EXPECT_EQ(results(), onGpu);
}

TEST_F(CudaDevice, FunctionsThatCannotBeToldRunOnTheHost) {
  gpu.failCall("cuFuncSetAttribute", CUDA_ERROR_INVALID_VALUE);
  const Tensor x = Tensor::fromVector<float>({2, 2}, {1, 3, 3, 7});
  EXPECT_THAT(floats(var(x, {0}, /*bias=*/false)), ElementsAre(1, 4));
  EXPECT_EQ(hostCalls(), 1u);
}

// A write into a tensor that nobody else has needs no copy; one into a shared one does.
TEST_F(CudaDevice, WritesKeepValuesApart) {
  Tensor x = vectorOf({1, 2, 3, 4});
  sync();
  Tensor y = x.copy();
  x(range(0, 2)) = 9;
  EXPECT_THAT(floats(x), ElementsAre(9, 9, 3, 4));
  EXPECT_THAT(floats(y), ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace fl::testing
