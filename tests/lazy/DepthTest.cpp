// A million recorded operators are built, evaluated and destroyed on a small stack: nothing may
// recurse over the depth of a graph. The automatic flush is off (FL_FLUSH_BYTES and FL_FLUSH_NODES
// are 0).
#include <gtest/gtest.h>

#include "fl/tensor/tensor.h"
#include "tests/SmallStack.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

constexpr int kOperators = 1'000'000;

Tensor chain(int operators) {
  Tensor x = Tensor::fromVector(std::vector<float>{0, 1, 2, 3});
  for (int i = 0; i < operators; ++i) {
    x = x + 1.0;
  }
  return x;
}

// Halves are taken apart and joined the other way round; three nodes a step.
Tensor siblings(int operators) {
  Tensor x = Tensor::fromVector(std::vector<float>{0, 1, 2, 3});
  for (int i = 0; i < operators / 3; ++i) {
    x = concatenate({x(range(2, 4)), x(range(0, 2))}, 0);
  }
  return x;
}

TEST(Depth, ChainEvaluates) {
  onSmallStack([] {
    const Counts counts;
    const Tensor x = chain(kOperators);
    EXPECT_EQ(counts.realizes(), 0u);
    const auto values = x.toHostVector<float>();
    EXPECT_EQ(values, (std::vector<float>{1e6f, 1e6f + 1, 1e6f + 2, 1e6f + 3}));
    EXPECT_EQ(counts.plansBuilt(), 1u) << "one graph, not flushed in pieces";
    // Equal pieces of the chain share a kernel; the first and the last may differ.
    EXPECT_LE(counts.kernelsCompiled(), 3u);
    EXPECT_EQ(counts.fallbacks(), 0u);
  });
}

TEST(Depth, ChainDiesUnevaluated) {
  onSmallStack([] {
    const Counts counts;
    {
      const Tensor x = chain(kOperators);
    }
    sync();
    EXPECT_EQ(counts.realizes(), 0u);
  });
}

TEST(Depth, SiblingsEvaluate) {
  onSmallStack([] {
    const Counts counts;
    const Tensor x = siblings(kOperators - 1);  // an odd number of exchanges
    EXPECT_EQ(x.toHostVector<float>(), (std::vector<float>{2, 3, 0, 1}));
    EXPECT_EQ(counts.realizes(), 1u);
    EXPECT_EQ(counts.fallbacks(), 0u);
  });
}

TEST(Depth, SiblingsDieUnevaluated) {
  onSmallStack([] { siblings(kOperators); });
}

// Writes through a view: updates of updates.
TEST(Depth, UpdatesEvaluate) {
  onSmallStack([] {
    Tensor x = full({4}, 0.0);
    for (int i = 0; i < kOperators / 50; ++i) {
      x(i % 4) = static_cast<double>(i);
    }
    EXPECT_EQ(x.toHostVector<float>(), (std::vector<float>{19996, 19997, 19998, 19999}));
  });
}

}  // namespace
}  // namespace fl::testing
