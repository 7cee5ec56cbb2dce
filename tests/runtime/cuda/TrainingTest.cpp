// Training on the device `cuda` (Gpu.h): the losses of the CPU's kernels, to the bit where no
// library makes products.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/mnist/Mnist.h"
#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "tests/runtime/cuda/Gpu.h"
#include "tests/runtime/cuda/WithoutLibraries.h"

namespace fl::testing {
namespace {

// The losses of some steps.
template <class MakeModel, class MakeOptimizer>
std::vector<float> train(TensorBackend& backend, const MakeModel& makeModel,
                         const MakeOptimizer& makeOptimizer, Dim batch, int steps) {
  const BackendScope scope(backend);
  setSeed(1);
  const auto [x, y] = app::loadDataset(app::digitsDirectory());
  Sequential model = makeModel();
  auto optimizer = makeOptimizer(model.params());
  std::vector<float> losses;
  for (int step = 0; step < steps; ++step) {
    setSeed(100 + step);
    const range some(step * batch, (step + 1) * batch);
    const Variable output = model(noGrad(x(span, span, some)));
    Variable loss = categoricalCrossEntropy(output, noGrad(y(some)));
    losses.push_back(loss.tensor().template scalar<float>());
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
  }
  return losses;
}

template <class MakeModel, class MakeOptimizer>
void expectCpusLosses(const MakeModel& makeModel, const MakeOptimizer& makeOptimizer, Dim batch,
                      int steps) {
  const std::vector<float> expected =
      train(cpuWithoutLibraries(), makeModel, makeOptimizer, batch, steps);
  const BackendScope cuda("lazy", "cuda");
  const uint64_t libraryCalls = runtime::counters().libraryCalls;
  const auto actual = train(defaultTensorBackend(), makeModel, makeOptimizer, batch, steps);
  const bool isExact = runtime::counters().libraryCalls == libraryCalls;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], isExact ? 0 : 1e-5 * expected[i]) << "step " << i;
  }
  EXPECT_LT(expected.back(), expected.front());
  EXPECT_THAT(takeMisuse(), ::testing::ElementsAre());
}

TEST(CudaTraining, OfAPerceptron) {
  if (!gpuProblem().empty()) GTEST_SKIP() << gpuProblem();
  const uint64_t fallbacks = runtime::counters().fallbacks,
                 hostCalls = runtime::counters().hostCalls;
  const auto makeModel = [] {
    Sequential model;
    model.add(View({64, -1}));
    model.add(Linear(64, 32));
    model.add(ReLU());
    model.add(Linear(32, 10));
    model.add(LogSoftmax());
    return model;
  };
  const auto makeOptimizer = [](const auto& parameters) { return AdamOptimizer(parameters, 1e-2); };
  expectCpusLosses(makeModel, makeOptimizer, /*batch=*/16, /*steps=*/6);
  EXPECT_EQ(runtime::counters().fallbacks, fallbacks);
  EXPECT_EQ(runtime::counters().hostCalls, hostCalls);
}

TEST(CudaTraining, OfTheModelOfTheMnistProgram) {
  if (!gpuProblem().empty()) GTEST_SKIP() << gpuProblem();
  const uint64_t fallbacks = runtime::counters().fallbacks;
  const auto makeModel = [] { return app::makeModel(8, 8); };
  const auto makeOptimizer = [](const auto& parameters) { return SGDOptimizer(parameters, 0.1); };
  expectCpusLosses(makeModel, makeOptimizer, /*batch=*/8, /*steps=*/3);
  EXPECT_EQ(runtime::counters().fallbacks, fallbacks);
}

}  // namespace
}  // namespace fl::testing
