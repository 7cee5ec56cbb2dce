// Plans of many inputs and operators: split into kernels as large as a kernel may be, and equal
// parts share one.
#include <gtest/gtest.h>

#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

Tensor numbers(const Shape& shape, float first) {
  std::vector<float> values(shape.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = first + static_cast<float>(i % 5) * 0.25f;
  }
  return Tensor::fromVector(shape, values);
}

class ManyInputs : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Counts, ManyInputs, ::testing::Values(2, 10, 24, 25, 500, 5000));

// Kernels as few as allowed by what fusion lets one load, 24 values: the sum so far and others.
TEST_P(ManyInputs, AreSplitAmongKernels) {
  const int inputs = GetParam();
  std::vector<Tensor> given;
  std::vector<float> expected(7, 0);
  for (int i = 0; i < inputs; ++i) {
    given.push_back(numbers({7}, static_cast<float>(i % 3)));
    const std::vector<float> values = given.back().toHostVector<float>();
    for (size_t k = 0; k < expected.size(); ++k) {
      expected[k] = i == 0 ? values[k] : expected[k] + values[k];
    }
  }
  const Counts counts;
  Tensor sum = given[0];
  for (int i = 1; i < inputs; ++i) {
    sum = sum + given[i];
  }
  EXPECT_EQ(sum.toHostVector<float>(), expected);
  constexpr int kInputsOfAKernel = 23;
  const int kernels = (inputs + kInputsOfAKernel - 1) / kInputsOfAKernel + 1;
  EXPECT_LE(counts.launches(), static_cast<uint64_t>(kernels));
  EXPECT_EQ(counts.realizes(), 1u);
  EXPECT_EQ(counts.fallbacks(), 0u);
}

class ManyOperators : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Counts, ManyOperators, ::testing::Values(10, 1000, 100000));

TEST_P(ManyOperators, Run) {
  const Tensor x = numbers({5}, 1);
  std::vector<float> expected = x.toHostVector<float>();
  const Counts counts;
  Tensor y = x;
  for (int i = 0; i < GetParam(); ++i) {
    y = i % 2 == 0 ? y + x : y - x;
    for (size_t k = 0; k < expected.size(); ++k) {
      const float step = 1 + static_cast<float>(k) * 0.25f;
      expected[k] = i % 2 == 0 ? expected[k] + step : expected[k] - step;
    }
  }
  EXPECT_EQ(y.toHostVector<float>(), expected);
  EXPECT_EQ(counts.fallbacks(), 0u);
}

// More layers of one kind need no kernel that a few do not.
TEST(EqualLayers, ShareTheirKernels) {
  const Tensor weights = numbers({16, 16}, -0.5f), bias = numbers({16, 1}, 0),
               x = numbers({16, 4}, 0);
  const auto run = [&](int layers) {
    const Counts counts;
    Tensor y = x;
    for (int i = 0; i < layers; ++i) {
      y = tanh(matmul(weights, y) + bias) * 0.5 + y;
    }
    y.toHostVector<float>();
    EXPECT_EQ(counts.plansBuilt(), 1u);
    return counts.kernelsCompiled() + counts.kernelsLoaded();
  };
  EXPECT_GT(run(3), 0u);
  EXPECT_EQ(run(100), 0u);
}

TEST(Roll, ByAnotherShiftIsTheSamePlan) {
  const Tensor x = numbers({3, 7}, 0);
  const auto run = [&](int shift) {
    const Counts counts;
    EXPECT_EQ(roll(x, shift, 1)(0, 0).scalar<float>(), x(0, (35 - shift) % 7).scalar<float>());
    return counts.plansBuilt();
  };
  EXPECT_GT(run(1), 0u);
  for (int shift = -6; shift < 20; ++shift) {
    EXPECT_EQ(run(shift), 0u) << shift;
  }
}

// An offset adds up the starts of at most 64 slices, of which a flip of a matrix has two: the 33rd
// begins with a copy.
TEST(Flips, OfOneAnotherAreCopiedNowAndThen) {
  constexpr int kFlips = 20000, kFlipsOfACopy = 32;
  const Tensor x = numbers({16, 16}, 1);
  const Counts counts;
  Tensor y = x;
  for (int i = 0; i < kFlips - 1; ++i) y = flip(y, i % 2);
  EXPECT_EQ(flip(y, 1).toHostVector<float>(), x.toHostVector<float>());
  EXPECT_LE(counts.launches(), kFlips / kFlipsOfACopy + 3u);
  EXPECT_GE(counts.launches(), kFlips / (2 * kFlipsOfACopy) + 1u) << "limits nothing";
}

TEST(Transpose, OfANumberIsThat) {
  const Counts counts;
  EXPECT_EQ(transpose(fromScalar(1.5f)).toHostVector<float>(), std::vector<float>{1.5f});
  EXPECT_EQ(counts.fallbacks(), 0u);
}

}  // namespace
}  // namespace fl::testing
