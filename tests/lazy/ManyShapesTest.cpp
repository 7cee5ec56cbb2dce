// One program over and over, on another shape each time: every plan is new, and memory stays
// bounded.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "fl/tensor/tensor.h"
#include "tests/ResidentMemory.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

// The i-th of shapes that all differ, of one, two and three dimensions in turns.
Shape shapeOf(Dim i) {
  const Dim j = i / 3;
  switch (i % 3) {
    case 0:
      return {1 + j};
    case 1:
      return {1 + j % 60, 1 + j / 60};
    default:
      return {1 + j % 15, 1 + j / 15 % 15, 1 + j / 225};
  }
}

// 0.75 an element.
float compute(const Shape& shape) {
  const Tensor x = full(shape, 0.5f);
  const Tensor y = x * x + sum(x, {0}, true) / static_cast<float>(shape.dim(0));
  return sum(y).scalar<float>();
}

TEST(ManyShapes, TakeBoundedMemory) {
  constexpr int kShapes = 10'000;
  const Counts counts;
  const size_t before = residentBytes();
  size_t most = before;
  for (int i = 0; i < kShapes; ++i) {
    const Shape shape = shapeOf(i);
    ASSERT_EQ(compute(shape), 0.75f * static_cast<float>(shape.elements())) << shape;
    if (i % 64 == 0) most = std::max(most, residentBytes());
  }
  EXPECT_GE(counts.plansBuilt(), uint64_t{kShapes});
  EXPECT_LE(counts.kernelsCompiled(), 50u) << "for extents that are arguments of kernels";
  EXPECT_EQ(counts.fallbacks(), 0u);
  std::cout << counts.kernelsCompiled() << " kernels; resident " << before << " B, then up to "
            << most << " B\n";
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // these keep books of their own
  EXPECT_LE(most - before, size_t{256} << 20);
#endif
}

}  // namespace
}  // namespace fl::testing
