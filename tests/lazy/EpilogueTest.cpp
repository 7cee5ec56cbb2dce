// Launches on parts of what a library call has just made: the bits of eager mode, and no launch of
// their own.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

using Inputs = std::vector<Tensor>;

struct Case {
  std::string name;
  std::vector<Shape> shapes;
  std::function<Tensor(const Inputs&)> compute;
  uint64_t launches;  // lazily
  dtype type = dtype::f32;
};

std::vector<Case> cases() {
  const auto dense = [](const Inputs& x) { return maximum(matmul(x[0], x[1]) + x[2], 0.0); };
  const auto softmaxOf = [](const Inputs& x) {
    const Tensor product = matmul(x[0], x[1]);
    const Tensor shifted = exp(product - amax(product, {0}, true));
    return shifted / sum(shifted, {0}, true);
  };
  return {
      // Pieces of columns; one piece; pieces of rows, which are no runs; a vector; a batch.
      {"columns", {{96, 64}, {64, 4000}, {96, 1}}, dense, 0},
      {"small", {{8, 5}, {5, 7}, {8, 1}}, dense, 0},
      {"rows", {{4000, 64}, {64, 24}, {4000, 1}}, dense, 1},
      {"vector", {{512, 300}, {300}, {512}}, dense, 0},
      {"batch", {{48, 32, 20}, {32, 40, 20}, {48, 40, 20}}, dense, 0},
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
      {"two results",
       {{64, 64}, {64, 64}},
       [](const Inputs& x) {
         const Tensor product = matmul(x[0], x[1]);
         return concatenate({tanh(product), product}, 1);
       },
       2},
  };
}

Inputs makeInputs(const Case& c) {
  setSeed(7);
  Inputs inputs;
  for (const Shape& shape : c.shapes) {
    inputs.push_back((rand(shape) - 0.5).astype(c.type));
  }
  return inputs;
}

TEST(EpilogueTest, HasTheBitsOfEagerModeAndNoLaunch) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    Tensor want;
    {
      const BackendScope scope("eager");
      want = c.compute(makeInputs(c));
    }
    const BackendScope scope("lazy");
    const Inputs inputs = makeInputs(c);
    sync();
    const Counts counts;
    const Tensor got = c.compute(inputs);
    sync();
    EXPECT_EQ(counts.launches(), c.launches);
    EXPECT_EQ(counts.fallbacks(), 0u);
    const auto bits = [](const Tensor& x) { return x.astype(dtype::f32).toHostVector<float>(); };
    EXPECT_EQ(bits(got), bits(want));
  }
}

}  // namespace
}  // namespace fl::testing
