// Library calls that read a part of a value where it lies, and calls and kernels that leave theirs
// in a part of another one: the bits of eager mode, no launch that copies, and no memory for
// copies.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/base/Flags.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/BufferLog.h"
#include "tests/lazy/Counts.h"
#include "tests/lazy/LaunchCase.h"

namespace fl::testing {
namespace {

Tensor dense(const Tensor& w, const Tensor& x, const Tensor& bias) {
  return maximum(matmul(w, x) + bias, 0.0);
}

std::vector<LaunchCase> cases() {
  const auto join = [](const Inputs& x) {
    return concatenate({matmul(x[0], x[1]), matmul(x[0], x[2])}, 1);
  };
  return {
      {"a result", {{24, 16}, {16, 7}, {16, 9}}, join, 0},
      {"f16", {{24, 16}, {16, 7}, {16, 9}}, join, 0, dtype::f16},
      {"a temporary",
       {{16, 16}, {16, 7}, {16, 9}},
       [=](const Inputs& x) { return matmul(x[0], join(x)); },
       0},
      {"with bias and ReLU between",
       {{96, 64}, {64, 4000}, {64, 3000}, {96, 1}},
       [](const Inputs& x) {
         return concatenate({dense(x[0], x[1], x[3]), dense(x[0], x[2], x[3])}, 1);
       },
       0},
      {"with bias and ReLU between, a temporary",
       {{96, 64}, {64, 4000}, {64, 3000}, {96, 1}, {96, 96}},
       [](const Inputs& x) {
         return matmul(x[4], concatenate({dense(x[0], x[1], x[3]), dense(x[0], x[2], x[3])}, 1));
       },
       0},
      {"with an epilogue behind",
       {{16, 16}, {16, 7}, {16, 9}},
       [=](const Inputs& x) { return tanh(join(x)); },
       1},
      {"of joined ones",
       {{16, 16}, {16, 3}, {16, 4}, {16, 5}},
       [=](const Inputs& x) { return concatenate({matmul(x[0], x[3]), join(x)}, 1); },
       0},
      {"reshaped",
       {{6, 5}, {5, 4}, {5, 8}},
       [](const Inputs& x) {
         return concatenate(
             {reshape(matmul(x[0], x[1]), {3, 2, 4}), reshape(matmul(x[0], x[2]), {3, 2, 8})}, 2);
       },
       0},
      // Copied by epilogues.
      {"across",
       {{16, 16}, {16, 8}, {16, 8}},
       [](const Inputs& x) { return concatenate({matmul(x[0], x[1]), matmul(x[0], x[2])}, 0); },
       0},
      {"twice the same",
       {{16, 16}, {16, 8}},
       [](const Inputs& x) {
         const Tensor product = matmul(x[0], x[1]);
         return concatenate({product, product}, 1);
       },
       1},
      {"sums",
       {{9, 5}, {9, 6}},
       [](const Inputs& x) { return concatenate({cumsum(x[0], 0), cumsum(x[1], 1)}, 1); },
       0},
      {"a slice",
       {{24, 16}, {16, 40}},
       [](const Inputs& x) { return matmul(x[0], x[1](span, range(3, 22))); },
       0},
      {"an index",
       {{24, 16}, {16, 5, 7}},
       [](const Inputs& x) { return matmul(x[0], x[1](span, span, 3)); },
       0},
      {"a slice along another axis",
       {{24, 16}, {20, 40}},
       [](const Inputs& x) { return matmul(x[0], x[1](range(2, 18), span)); },
       1},
      {"every second column",
       {{24, 16}, {16, 40}},
       [](const Inputs& x) { return matmul(x[0], x[1](span, range(1, 21, 2))); },
       1},
      {"images",
       {{9, 8, 3, 7}, {3, 3, 3, 4}},
       [](const Inputs& x) {
         return conv2d(x[0](span, span, span, range(2, 5)), x[1], 1, 1, 1, 1, 1, 1, 1);
       },
       0},
      {"a filter",
       {{9, 8, 3, 2}, {3, 3, 3, 6}},
       [](const Inputs& x) {
         return conv2d(x[0], x[1](span, span, span, range(1, 5)), 1, 1, 1, 1, 1, 1, 1);
       },
       0},
      {"of a slice's sums",
       {{9, 12}},
       [](const Inputs& x) { return cumsum(x[0](span, range(5, 11)), 0); },
       0},
      {"an order, whose dtype is changed",
       {{9, 12}},
       [](const Inputs& x) { return argsort(x[0](span, range(5, 11)), 0); },
       1},
      {"gates of a recurrent network",
       {{32, 20}, {20, 28}, {20, 8}, {20, 32}},
       [](const Inputs& x) {
         const Tensor gates = matmul(x[3], matmul(x[0], x[1]));  // [20, 28]
         Inputs next;
         for (Dim i = 0; i < 4; ++i) {
           next.push_back(matmul(x[0], gates(span, range(7 * i, 7 * (i + 1)))));
         }
         return concatenate(next, 1);
       },
       0},
      {"a large padding of a product",
       {{1024, 16}, {16, 1024}},
       [](const Inputs& x) { return pad(matmul(x[0], x[1]), {{0, 0}, {2, 3}}); },
       2},
      {"where an update writes",
       {{16, 16}, {16, 30}},
       [](const Inputs& x) {
         Tensor y = x[1].copy();
         y(span, range(4, 14)) = matmul(x[0], y(span, range(8, 18)));
         y += 1.0;
         y(span, range(0, 10)) += matmul(x[0], y(span, range(20, 30)));
         return y;
       },
       4},
  };
}

// What kernels write into a concatenation, or into a padding that is filled around it.
std::vector<LaunchCase> kernelCases() {
  const auto softmax = [](const Tensor& x) {
    const Tensor e = exp(x - amax(x, {0}, true));
    return e / sum(e, {0}, true);
  };
  const auto join = [](int axis) {
    return [=](const Inputs& x) { return concatenate({tanh(x[0]), x[1] * 2.0}, axis); };
  };
  return {
      {"along axis 0", {{96, 50}, {64, 50}}, join(0), 2},
      {"along axis 0, f16", {{96, 50}, {64, 50}}, join(0), 2, dtype::f16},
      {"along the middle axis", {{8, 9, 5}, {8, 10, 5}}, join(1), 2},
      {"along the last axis", {{8, 9, 5}, {8, 9, 3}}, join(2), 2},
      {"a run of 16 and one of 15, which is copied", {{16, 50}, {15, 50}}, join(0), 3},
      {"rows",
       {{96, 50}, {64, 50}},
       [=](const Inputs& x) { return concatenate({softmax(x[0]), softmax(x[1])}, 0); },
       2},
      {"sums of columns",
       {{96, 7, 5}, {64, 9, 5}},
       [](const Inputs& x) { return concatenate({sum(x[0], {1}), sum(x[1], {1})}, 0); },
       2},
      // Sums over axes 0 and 1 are of one merged axis, which what is written across it is not.
      {"rows of two axes",
       {{9, 64, 5}, {9, 64, 5}},
       [](const Inputs& x) {
         const auto normalized = [](const Tensor& y) { return y - mean(y, {0, 1}, true); };
         return concatenate({normalized(x[0]), normalized(x[1])}, 1);
       },
       2},
      {"reshaped",
       {{96, 50}, {64, 50}},
       [](const Inputs& x) {
         return concatenate({reshape(tanh(x[0]), {96, 5, 10}), reshape(exp(x[1]), {64, 5, 10})}, 0);
       },
       2},
      {"random numbers",
       {{96, 50}},
       [](const Inputs& x) {
         setSeed(3);
         return concatenate({x[0] * rand({96, 50}), tanh(x[0])}, 0);
       },
       2},
      {"with a reader in its kernel",
       {{96, 50}, {64, 50}},
       [](const Inputs& x) {
         const Tensor y = tanh(x[0]);
         return concatenate({y, x[1] * 2.0}, 0) + sum(y, {0}, true);
       },
       2},
      {"whose maps are made of its parts",
       {{96, 50}, {64, 50}, {160, 50}, {1, 50}},
       [=](const Inputs& x) { return (join(0)(x) - x[3]) * x[2]; },
       2},
      {"whose map is made of parts in memory",
       {{96, 50}, {96, 40}},
       [=](const Inputs& x) { return exp(concatenate({x[0], x[1]}, 1)); },
       2},
      {"whose map is reduced",
       {{96, 50}, {96, 40}},
       [=](const Inputs& x) { return sum(exp(concatenate({x[0], x[1]}, 1)), {1}); },
       3},
      {"with another reader, both copied",
       {{96, 50}},
       [](const Inputs& x) {
         const Tensor y = tanh(x[0]);
         return concatenate({y, cumsum(y, 0)}, 0);
       },
       3},
      {"twice the same",
       {{96, 50}},
       [](const Inputs& x) {
         const Tensor y = tanh(x[0]);
         return concatenate({y, y}, 0);
       },
       3},
      {"of joined ones",
       {{96, 50}, {64, 50}, {160, 20}},
       [=](const Inputs& x) { return concatenate({join(0)(x), exp(x[2])}, 1); },
       3},
      {"across joined ones, which are copied",
       {{96, 50}, {64, 50}, {80, 50}},
       [=](const Inputs& x) { return concatenate({join(0)(x), exp(x[2])}, 0); },
       4},
      {"a large padding",
       {{1022, 1024}},
       [](const Inputs& x) { return pad(tanh(x[0]), {{1, 1}, {2, 3}}); },
       5},
      {"a small padding",
       {{96, 50}},
       [](const Inputs& x) { return pad(tanh(x[0]), {{1, 1}, {2, 3}}); },
       3},
  };
}

// On which other launches are epilogues.
bool isGpu() { return flags().device == "cuda"; }

TEST(Parts, HaveTheBitsOfEagerModeAndNoCopies) {
  for (const LaunchCase& c : cases()) expectBitsAndLaunches(c, !isGpu());
}

TEST(Parts, OfKernelsHaveTheBitsOfEagerModeAndNoCopies) {
  for (const LaunchCase& c : kernelCases()) expectBitsAndLaunches(c);
}

// Starts are numbers of the plan, also those that leave elements at any place of a cache line.
TEST(Parts, BeginAnywhereInOnePlan) {
  constexpr Dim kRows = 5, kColumns = 30, kTaken = 7;
  const auto compute = [](const Tensor& w, const Tensor& x, Dim start) {
    return matmul(w, x(span, range(start, start + kTaken)));
  };
  std::vector<std::vector<float>> want;
  const LaunchCase inputs{"", {{9, kRows}, {kRows, kColumns}}, nullptr, 0};
  {
    const BackendScope scope("eager");
    const Inputs x = makeInputs(inputs);
    for (Dim start = 0; start + kTaken <= kColumns; ++start) {
      want.push_back(bits(compute(x[0], x[1], start)));
    }
  }
  const BackendScope scope("lazy");
  const Inputs x = makeInputs(inputs);
  sync();
  const Counts counts;
  for (Dim start = 0; start + kTaken <= kColumns; ++start) {
    EXPECT_EQ(bits(compute(x[0], x[1], start)), want[start]) << start;
  }
  EXPECT_EQ(counts.plansBuilt(), 1u);
  if (!isGpu()) {
    EXPECT_EQ(counts.launches(), 0u);
  }
}

// A slice of a constant filter is not the filter that is packed once.
TEST(Parts, OfAConstantAreNotTheConstant) {
  const BackendScope scope("lazy");
  const Inputs x = makeInputs({"", {{12, 12, 16, 2}, {3, 3, 16, 48}}, nullptr, 0});
  const auto conv = [](const Tensor& images, const Tensor& filter) {
    return bits(conv2d(images, filter, 1, 1, 1, 1, 1, 1, 1));
  };
  const Tensor part = x[1](span, span, span, range(16, 48)).copy();
  part.toHostVector<float>();
  const std::vector<float> want = conv(x[0], part);
  for (int run = 0; run < 3; ++run) {  // constants are known from the second run on
    conv(x[0], x[1]);
    EXPECT_EQ(conv(x[0], x[1](span, span, span, range(16, 48))), want) << run;
  }
}

// With copies there would be two products of 64 KiB beside both together, and a slice of a half
// beside the whole.
TEST(Parts, TakeNoMemoryForCopies) {
  if (isGpu()) GTEST_SKIP() << "the log is of the host's memory";
  const BackendScope scope("lazy");
  const Inputs x = makeInputs({"", {{1, 128}, {128, 128}, {128, 128}}, nullptr, 0});
  constexpr size_t kProduct = 128 * 128 * sizeof(float);
  const auto arena = [](const std::function<Tensor()>& compute) {
    return std::ranges::max(buffersMade([&] {
      const Tensor result = compute();
      sync();
    }));
  };
  EXPECT_EQ(
      arena([&] { return matmul(x[0], concatenate({matmul(x[1], x[2]), matmul(x[2], x[1])}, 1)); }),
      2 * kProduct);
  EXPECT_EQ(arena([&] { return matmul(x[0], tanh(x[1])(span, range(64, 128))); }), kProduct);
  EXPECT_EQ(arena([&] { return matmul(concatenate({tanh(x[1]), exp(x[2])}, 0), x[1]); }),
            2 * kProduct);
}

}  // namespace
}  // namespace fl::testing
