// Two GPUs that are none (FakeGpu.h), `cuda` and `cuda:1`, of which the second reaches the memory
// of the first. What is called with another GPU's context, stream, event, memory or function than
// it should be is misuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <thread>

#include "fl/base/Flags.h"
#include "fl/fl.h"
#include "fl/kernel/cuda/Launch.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/cuda/Driver.h"
#include "fl/runtime/cuda/HandWritten.h"
#include "tests/ErrorOf.h"
#include "tests/runtime/cuda/FakeCublasLt.h"
#include "tests/runtime/cuda/FakeCudnn.h"
#include "tests/runtime/cuda/FakeGpu.h"

namespace fl::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<float> floats(const Tensor& tensor) { return tensor.toHostVector<float>(); }

class SeveralGpus : public ::testing::Test {
 protected:
  SeveralGpus() {
    sync();
    gpu.reset();
  }
  ~SeveralGpus() override { EXPECT_THAT(gpu.misuse(), ElementsAre()); }

  static FakeGpu& install() {
    FakeGpu& gpu = FakeGpu::install();
    gpu.setGpus(2);
    return gpu;
  }
  // As a value on the device, which all work on it has made.
  template <class Make>
  static Tensor madeOn(const char* device, const Make& make) {
    const BackendScope scope("lazy", device);
    Tensor tensor = make();
    tensor.value()->data();
    return tensor;
  }

  FakeGpu& gpu = install();
};

// Another library of the program may change what a thread's calls are for.
TEST_F(SeveralGpus, DoNotTrustTheContextOfTheirThread) {
  const Tensor x = madeOn("cuda", [] { return Tensor::fromVector(std::vector<float>{1, 2}); });
  const runtime::cuda::Driver& driver = runtime::cuda::driver();
  CUcontext second = nullptr;
  driver.cuDevicePrimaryCtxRetain(&second, 1);
  driver.cuCtxSetCurrent(second);
  EXPECT_THAT(floats(madeOn("cuda", [&] { return x * 3; })), ElementsAre(3, 6));
}

TEST_F(SeveralGpus, HaveNames) {
  EXPECT_EQ(runtime::makeDevice("cuda")->name(), "cuda");
  EXPECT_EQ(runtime::makeDevice("cuda:0")->name(), "cuda");
  EXPECT_EQ(runtime::makeDevice("cuda:1")->name(), "cuda:1");
  const auto error = [](const char* name) {
    return test::errorOf<std::invalid_argument>([&] { runtime::makeDevice(name); });
  };
  EXPECT_EQ(error("cuda:2"), "device \"cuda:2\" does not exist; there are: cuda:0, cuda:1");
  for (const char* name : {"cuda:", "cuda:x", "cuda:-1", "cuda:1234567890"}) {
    EXPECT_EQ(error(name),
              std::string("device \"") + name + "\": behind cuda: stands the number of a GPU");
  }
  EXPECT_THAT(error("cuda1"), StartsWith("device \"cuda1\" does not exist; there are: cpu, "));
}

TEST_F(SeveralGpus, FlDeviceMayNameOne) {
  flags().device = "cuda:1";
  const BackendScope scope("lazy");
  const Tensor x = full({4}, 1.0F) + 1;
  x.value()->data();
  flags().device = "cpu";
  EXPECT_EQ(floats(x), (std::vector<float>(4, 2)));
  EXPECT_EQ(gpu.counts().launchesDone, 1u);
}

// Kernels, products, convolutions, scattering, and a step that is replayed as a graph.
TEST_F(SeveralGpus, HaveTheSameBitsEach) {
  offerProducts(true);
  offerConvolutions(true);
  const auto losses = [](const char* device) {
    const BackendScope scope("lazy", device);
    setSeed(3);
    Sequential model;
    model.add(Conv2D(3, 4, 3, 3, 1, 1, PaddingMode::SAME, PaddingMode::SAME));
    model.add(ReLU());
    model.add(View({5 * 5 * 4, 2}));
    model.add(Linear(5 * 5 * 4, 3));
    Embedding embedding(3, 7);
    std::vector<Variable> parameters = model.params();
    parameters.push_back(embedding.param(0));
    SGDOptimizer optimizer(parameters, 1e-2);
    const Variable x(rand({5, 5, 3, 2}), false),
        indices(Tensor::fromVector({2}, std::vector{1, 5}), false);
    std::vector<float> losses;
    for (int i = 0; i < 5; ++i) {
      const Variable y = model(x) + embedding(indices);
      Variable loss = sum(y * y, {0, 1});
      losses.push_back(loss.tensor().scalar<float>());
      loss.backward();
      optimizer.step();
      optimizer.zeroGrad();
    }
    return losses;
  };
  const std::vector<float> first = losses("cuda");
  const size_t graphs = gpu.counts().graphLaunches;
  const uint64_t calls = runtime::counters().libraryCalls;
  // Poison comes between the steps of a plan.
  EXPECT_EQ(graphs > 0, !runtime::poisons());
  EXPECT_EQ(losses("cuda:1"), first);
  EXPECT_EQ(gpu.counts().graphLaunches, 2 * graphs);
  EXPECT_GT(runtime::counters().libraryCalls, calls);
  EXPECT_EQ(gpu.counts().bytesAcross, 0u);
  offerProducts(false);
  offerConvolutions(false);
}

TEST_F(SeveralGpus, BringValuesFromWhatTheyReach) {
  const Tensor x = madeOn("cuda", [] { return arange({1000}, 0, dtype::f32) * 2; });
  gpu.reset();
  const BackendScope scope("lazy", "cuda:1");
  const Tensor y = x + 1;
  y.value()->data();
  EXPECT_EQ(gpu.counts().bytesAcross, 4000u);
  EXPECT_EQ(gpu.counts().waits, 0u);  // the host goes on
  EXPECT_EQ(gpu.counts().bytesUp, 0u);
  EXPECT_EQ(floats(y)[999], 1999);
  EXPECT_EQ(gpu.counts().bytesDown, 4000u);
  // Kept from the second use on.
  for (int i = 0; i < 3; ++i) (x + 1).value()->data();
  EXPECT_EQ(gpu.counts().bytesAcross, 2 * 4000u);
}

// The other stream waits for what makes the value, and the memory is not given back before.
TEST_F(SeveralGpus, CopiesAreInTheOrderOfBothStreams) {
  Tensor y;
  {
    const Tensor x = madeOn("cuda", [] { return arange({1000}, 0, dtype::f32) * 2; });
    const BackendScope scope("lazy", "cuda:1");
    y = x + 1;
    y.value()->data();
  }
  EXPECT_EQ(floats(y)[999], 1999);
  const std::vector<std::string> done = gpu.done();
  const auto at = [&](const char* name) { return std::ranges::find(done, name) - done.begin(); };
  EXPECT_LT(at("launch"), at("peer copy"));
  EXPECT_EQ(std::ranges::count(done, "peer copy"), 1);
  EXPECT_EQ(std::ranges::count(done, "wait"), 1);  // the second is yet to come
}

TEST_F(SeveralGpus, BringValuesFromOthersThroughTheHost) {
  const Tensor x = madeOn("cuda:1", [] { return arange({1000}, 0, dtype::f32) * 2; });
  gpu.reset();
  const BackendScope scope("lazy", "cuda");
  const Tensor y = x + 1;
  EXPECT_EQ(floats(y)[999], 1999);
  EXPECT_EQ(gpu.counts().bytesAcross, 0u);
  EXPECT_EQ(gpu.counts().bytesUp, 4000u);
  EXPECT_EQ(gpu.counts().bytesDown, 2 * 4000u);
}

TEST_F(SeveralGpus, NamesOfOneGpuAreOneMemory) {
  const Tensor x = madeOn("cuda", [] { return arange({1000}, 0, dtype::f32) * 2; });
  gpu.reset();
  const BackendScope scope("lazy", "cuda:0");
  EXPECT_EQ(floats(x + 1)[999], 1999);
  EXPECT_EQ(gpu.counts().bytesAcross + gpu.counts().bytesUp, 0u);
}

TEST_F(SeveralGpus, ErrorsNameTheirGpu) {
  const BackendScope scope("lazy", "cuda:1");
  const Tensor x = madeOn("cuda:1", [] { return full({8}, 1.0F); });
  gpu.failCall("cuLaunchKernel", CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(test::errorOf<std::runtime_error>([&] { (x + 1).value()->data(); }),
              StartsWith("CUDA: cuda:1: a launch of map add "));
  gpu.reset();
  gpu.failLater("cuLaunchKernel", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(test::errorOf<std::runtime_error>([&] { floats(x + 1); }),
              StartsWith("CUDA: cuda:1: told to fail (CUDA_ERROR_OF_A_TEST), in one of these"));
  gpu.reset();
  gpu.setMemory(gpu.liveBytes() + 1000);
  EXPECT_THAT(test::errorOf<std::bad_alloc>([&] { full({100000}, 1.0F).value()->data(); }),
              HasSubstr("memory of cuda:1"));
}

// The code of each is made for it.
TEST_F(SeveralGpus, SayWhatHappensWithoutAKernelWrittenByHand) {
  const auto compiler = ir::cuda::handWrittenCompiler;
  ir::cuda::handWrittenCompiler = [](ir::Op, dtype, const ir::Target&) -> ir::Artifact {
    throw std::runtime_error("no compiler");
  };
  runtime::cuda::Context& second = runtime::cuda::Context::of(1);
  const auto find = [&] {
    return handWritten(second, ir::Op::Transpose, dtype::f16, "attention is made of kernels");
  };
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(find(), nullptr);
  EXPECT_EQ(find(), nullptr);
  const std::string told = ::testing::internal::GetCapturedStderr();
  ir::cuda::handWrittenCompiler = compiler;
  const std::string sentence = "attention is made of kernels: no compiler\n";
  EXPECT_THAT(told, HasSubstr(sentence));
  EXPECT_EQ(told.find(sentence), told.rfind(sentence));
  EXPECT_NE(handWritten(runtime::cuda::Context::of(0), ir::Op::Transpose, dtype::f16, ""), nullptr);
}

TEST_F(SeveralGpus, WorkForThreadsAtTheSameTime) {
  std::vector<std::thread> threads;
  std::array<float, 4> sums = {};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const BackendScope scope("lazy", i % 2 == 0 ? "cuda" : "cuda:1");
      Tensor x = full({100}, static_cast<float>(i));
      for (int step = 0; step < 10; ++step) x = x + 1;
      sums[i] = sum(x).scalar<float>();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(sums, ElementsAre(1000, 1100, 1200, 1300));
}

}  // namespace
}  // namespace fl::testing
