// A program whose body never repeats: each automatic flush is a plan of its own, which is kept only
// while there is room.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "fl/tensor/tensor.h"
#include "tests/ResidentMemory.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

TEST(UnlikePlans, AreKeptWhileThereIsRoom) {
  constexpr int kSteps = 400'000;
  constexpr size_t kMostBytes = size_t{256} << 20;
  Tensor a = full({64}, 1.0f), b = full({64}, 2.0f);
  std::mt19937 draw(1);
  const auto step = [&] {
    switch (draw() % 5) {
      case 0:
        a = a * 0.5f + b;
        break;
      case 1:
        a = sin(a);
        break;
      case 2:
        a(range(0, 32)) = a(range(1, 33)).copy();
        break;
      case 3:
        a = cos(a) - b;
        break;
      default:
        b = b * 0.9f + a * 0.1f;
    }
  };
  const Counts counts;
  const size_t before = residentBytes();
  size_t most = before;
  for (int i = 0; i < kSteps; ++i) {
    step();
    if (i % 64 == 0) most = std::max(most, residentBytes());
  }
  EXPECT_EQ(a.toHostVector<float>().size(), 64u);
  EXPECT_GE(counts.plansBuilt(), 30u);
  EXPECT_EQ(counts.fallbacks(), 0u);
  std::cout << "resident " << before << " B, then up to " << most << " B\n";
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // these keep books of their own
  EXPECT_LE(most - before, kMostBytes);
#endif
}

}  // namespace
}  // namespace fl::testing
