// Launches on parts of what a library call has just made: the bits of eager mode, and no launch of
// their own.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "fl/autograd/tensor/AutogradExtension.h"
#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/host/ThreadPool.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"
#include "tests/lazy/LaunchCase.h"

namespace fl::testing {
namespace {

std::vector<LaunchCase> cases() {
  const auto dense = [](const Inputs& x) { return maximum(matmul(x[0], x[1]) + x[2], 0.0); };
  const auto softmaxOf = [](const Inputs& x) {
    const Tensor product = matmul(x[0], x[1]);
    const Tensor shifted = exp(product - amax(product, {0}, true));
    return shifted / sum(shifted, {0}, true);
  };
  return {
      // Pieces of columns; one piece; pieces of rows, which are runs of a vector alone; a batch.
      {"columns", {{96, 64}, {64, 4000}, {96, 1}}, dense, 0},
      {"small", {{8, 5}, {5, 7}, {8, 1}}, dense, 0},
      {"rows", {{4000, 64}, {64, 24}, {4000, 1}}, dense, 1},
      {"vector", {{512, 300}, {300}, {512}}, dense, 0},
      {"products of a vector",
       {{512, 300}, {300}, {512}, {400, 512}, {400}, {64, 400}, {64}},
       [](const Inputs& x) {
         const Tensor first = tanh(matmul(x[0], x[1]) + x[2]);
         const Tensor second = maximum(matmul(x[3], first) + x[4], 0.0);
         return exp(matmul(x[5], second) * 0.01) + x[6];
       },
       0},
      {"batch", {{48, 32, 20}, {32, 40, 20}, {48, 40, 20}}, dense, 0},
      {"odd batch", {{5, 4, 9}, {4, 7, 9}, {5, 7, 9}}, dense, 0},
      {"f16", {{96, 64}, {64, 4000}, {96, 1}}, dense, 0, dtype::f16},
      {"bf16", {{96, 64}, {64, 4000}, {96, 1}}, dense, 0, dtype::bf16},
      {"softmax of columns", {{100, 64}, {64, 3000}}, softmaxOf, 0},
      // The map reads the product across, and one that is shorter.
      {"transposed",
       {{64, 64}, {64, 64}},
       [](const Inputs& x) { return transpose(matmul(x[0], x[1]), {1, 0}) + x[0]; },
       1},
      {"repeated",
       {{64, 32}, {32, 1}, {64, 90}},
       [](const Inputs& x) { return matmul(x[0], x[1]) + x[2]; },
       1},
      // One piece, of which one thread would make all sines.
      {"few pieces",
       {{16, 4}, {4, 4096}},
       [](const Inputs& x) { return sin(matmul(x[0], x[1])); },
       1},
      {"over an operand",
       {{512, 512}, {512, 256}},
       [](const Inputs& x) {
         Tensor updated = tanh(x[0]);
         updated(span, range(128, 384)) = matmul(updated, x[1]);
         return updated;
       },
       2},
      {"two results",
       {{64, 64}, {64, 64}},
       [](const Inputs& x) {
         const Tensor product = matmul(x[0], x[1]);
         return concatenate({tanh(product), product}, 1);
       },
       1},
  };
}

TEST(EpilogueTest, HasTheBitsOfEagerModeAndNoLaunch) {
  for (const LaunchCase& c : cases()) expectBitsAndLaunches(c);
}

TEST(EpilogueTest, IsTheSameOnAnyNumberOfThreads) {
  const LaunchCase dense = cases().front();
  const Inputs inputs = makeInputs(dense);
  const int before = host::getNumThreads();
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2, 5}) {
    host::setNumThreads(threads);
    results.push_back(dense.compute(inputs).toHostVector<float>());
  }
  host::setNumThreads(before);
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

// A state that a step updates stays in its memory.
TEST(EpilogueTest, StepsOfARecurrence) {
  const auto compute = [](const char* backend) {
    const BackendScope scope(backend);
    const Inputs inputs = makeInputs({"", {{300, 300}, {300, 64}}, nullptr, 0});
    Tensor state = inputs[1].copy();
    for (int step = 0; step < 5; ++step) {
      state = 0.5 * state + tanh(matmul(inputs[0], state));
      eval(state);
    }
    return state.toHostVector<float>();
  };
  EXPECT_EQ(compute("lazy"), compute("eager"));
}

TEST(EpilogueTest, OfConvolutions) {
  const auto compute = [](const char* backend, dtype type, bool gradient) {
    const BackendScope scope(backend);
    const Inputs x =
        makeInputs({"", {{33, 21, 16, 16}, {3, 3, 16, 32}, {33, 21, 32, 16}}, nullptr, 0, type});
    sync();
    const Tensor y = gradient ? detail::conv2dBackwardData(x[2], x[0], x[1], 1, 1, 1, 1, 1, 1, 1,
                                                           nullptr, nullptr)
                              : conv2d(x[0], x[1], 1, 1, 1, 1, 1, 1, 1);
    const Counts counts;
    const auto values = tanh(y).astype(dtype::f32).toHostVector<float>();
    if (std::string(backend) == "lazy") {
      EXPECT_EQ(counts.launches(), 0u) << gradient;
      EXPECT_EQ(counts.fallbacks(), 0u);
    }
    return values;
  };
  for (dtype type : {dtype::f32, dtype::f16}) {
    for (bool gradient : {false, true}) {
      EXPECT_EQ(compute("lazy", type, gradient), compute("eager", type, gradient)) << gradient;
    }
  }
}

}  // namespace
}  // namespace fl::testing
