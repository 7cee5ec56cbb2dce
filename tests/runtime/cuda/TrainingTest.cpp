// Training on the device `cuda` (Gpu.h): the losses of the CPU's kernels, to the bit where no
// library makes products.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/mnist/Mnist.h"
#include "fl/contrib/contrib.h"
#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "tests/runtime/cuda/Gpu.h"
#include "tests/runtime/cuda/WithoutLibraries.h"

namespace fl::testing {
namespace {

struct Batch {
  Tensor x, y;
};

// Of some digits.
auto digits(Dim count) {
  return [=](int step) {
    const auto [x, y] = app::loadDataset(app::digitsDirectory());
    const range some(step * count, (step + 1) * count);
    return Batch{x(span, span, some), y(some)};
  };
}

// The losses of some steps.
template <class MakeModel, class MakeOptimizer, class MakeBatch>
std::vector<float> train(TensorBackend& backend, const MakeModel& makeModel,
                         const MakeOptimizer& makeOptimizer, const MakeBatch& makeBatch,
                         int steps) {
  const BackendScope scope(backend);
  setSeed(1);
  Sequential model = makeModel();
  auto optimizer = makeOptimizer(model.params());
  std::vector<float> losses;
  for (int step = 0; step < steps; ++step) {
    setSeed(100 + step);
    const Batch batch = makeBatch(step);
    Variable loss = categoricalCrossEntropy(model(noGrad(batch.x)), noGrad(batch.y));
    losses.push_back(loss.tensor().template scalar<float>());
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
  }
  return losses;
}

template <class MakeModel, class MakeOptimizer, class MakeBatch>
void expectCpusLosses(const MakeModel& makeModel, const MakeOptimizer& makeOptimizer,
                      const MakeBatch& makeBatch, int steps) {
  const std::vector<float> expected =
      train(cpuWithoutLibraries(), makeModel, makeOptimizer, makeBatch, steps);
  const BackendScope cuda("lazy", "cuda");
  const uint64_t libraryCalls = runtime::counters().libraryCalls;
  const auto actual = train(defaultTensorBackend(), makeModel, makeOptimizer, makeBatch, steps);
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
  expectCpusLosses(makeModel, makeOptimizer, digits(16), /*steps=*/6);
  EXPECT_EQ(runtime::counters().fallbacks, fallbacks);
  EXPECT_EQ(runtime::counters().hostCalls, hostCalls);
}

TEST(CudaTraining, OfTheModelOfTheMnistProgram) {
  if (!gpuProblem().empty()) GTEST_SKIP() << gpuProblem();
  const uint64_t fallbacks = runtime::counters().fallbacks;
  const auto makeModel = [] { return app::makeModel(8, 8); };
  const auto makeOptimizer = [](const auto& parameters) { return SGDOptimizer(parameters, 0.1); };
  expectCpusLosses(makeModel, makeOptimizer, digits(8), /*steps=*/3);
  EXPECT_EQ(runtime::counters().fallbacks, fallbacks);
}

// Each token's next one; the gradient of the embedding adds up the lines of equal tokens.
TEST(CudaTraining, OfATransformer) {
  if (!gpuProblem().empty()) GTEST_SKIP() << gpuProblem();
  constexpr int kWidth = 16, kTokens = 11, kLength = 12, kSequences = 3;
  const uint64_t fallbacks = runtime::counters().fallbacks,
                 hostCalls = runtime::counters().hostCalls;
  const auto makeModel = [] {
    Sequential model;
    model.add(Embedding(kWidth, kTokens));
    Residual attention;
    attention.add(LayerNorm(0, 1e-5, true, kWidth));
    attention.add(MultiheadAttention(kWidth, 2));
    attention.addShortcut(0, 3);
    model.add(std::move(attention));
    model.add(Linear(kWidth, kTokens));
    model.add(LogSoftmax());
    model.add(View({kTokens, -1}));
    return model;
  };
  const auto makeOptimizer = [](const auto& parameters) { return AdamOptimizer(parameters, 1e-2); };
  const auto makeBatch = [](int) {
    std::vector<int> tokens, next;
    for (int i = 0; i < kLength * kSequences; ++i) {
      tokens.push_back(i * i % kTokens);
      next.push_back((i + 1) * (i + 1) % kTokens);
    }
    return Batch{Tensor::fromVector({kLength, kSequences}, tokens), Tensor::fromVector(next)};
  };
  expectCpusLosses(makeModel, makeOptimizer, makeBatch, /*steps=*/4);
  EXPECT_EQ(runtime::counters().fallbacks, fallbacks);
  EXPECT_EQ(runtime::counters().hostCalls, hostCalls);
}

}  // namespace
}  // namespace fl::testing
