// Pooling's gradient as kernels compute it, against loops over windows. Numbers are whole, and so
// are what windows' sizes divide, so that sums are the same in any order.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "fl/fl.h"
#include "fl/tensor/TableOps.h"
#include "tests/Seed.h"
#include "tests/runtime/cuda/WithoutLibraries.h"

namespace fl::testing {
namespace {

using table::Pool2dParameters;
using Images = std::vector<float>;  // some of one size, one behind the other

// What an element of the gradient, divided by how many each window has, adds to each image.
void addWindow(const Pool2dParameters& p, const float* image, int width, int height, int x, int y,
               float gradient, float* result) {
  std::vector<int> inside;
  for (int j = std::max(y, 0); j < std::min(y + p.wy, height); ++j) {
    for (int i = std::max(x, 0); i < std::min(x + p.wx, width); ++i) {
      inside.push_back(i + width * j);
    }
  }
  if (p.mode == PoolingMode::MAX) {
    const auto isLess = [&](int one, int other) { return image[one] < image[other]; };
    result[*std::max_element(inside.begin(), inside.end(), isLess)] += gradient;
    return;
  }
  const int size =
      p.mode == PoolingMode::AVG_INCLUDE_PADDING ? p.wx * p.wy : static_cast<int>(inside.size());
  for (const int at : inside) result[at] += gradient / static_cast<float>(size);
}

struct Case {
  int width, height;
  Pool2dParameters p;
};

class PoolingsGradient : public ::testing::TestWithParam<Case> {};

TEST_P(PoolingsGradient, GoesToWhatWindowsCover) {
  constexpr int kImages = 6, kDivisible = 7 * 16 * 9 * 25;
  for (const PoolingMode mode :
       {PoolingMode::MAX, PoolingMode::AVG_INCLUDE_PADDING, PoolingMode::AVG_EXCLUDE_PADDING}) {
    auto [width, height, p] = GetParam();
    p.mode = mode;
    const int across = 1 + (width + 2 * p.px - p.wx) / p.sx;
    const int down = 1 + (height + 2 * p.py - p.wy) / p.sy;
    std::mt19937_64 random(testSeed(55));
    Images input(kImages * width * height), gradient(kImages * across * down);
    for (float& x : input) x = static_cast<float>(random() % 5) - 2;  // of which many are the same
    for (float& x : gradient) x = static_cast<float>(kDivisible * (random() % 7));
    Images expected(input.size());
    for (size_t i = 0; i < gradient.size(); ++i) {
      const int n = static_cast<int>(i), image = n / (across * down) * width * height;
      addWindow(p, &input[image], width, height, n % across * p.sx - p.px,
                n / across % down * p.sy - p.py, gradient[i], &expected[image]);
    }
    const BackendScope scope(cpuWithoutLibraries());
    const Tensor x = Tensor::fromVector({width, height, 3, 2}, input);
    const Tensor dy = Tensor::fromVector({across, down, 3, 2}, gradient);
    EXPECT_EQ(table::pool2dBackward(dy, x, p).toHostVector<float>(), expected)
        << "mode " << static_cast<int>(mode);
  }
}

// Strides as long as windows, shorter and longer, that divide them or do not, and images that end
// with a window, behind it, or in its padding.
INSTANTIATE_TEST_SUITE_P(
    Windows, PoolingsGradient,
    ::testing::Values(Case{8, 6, {2, 2, 2, 2}}, Case{7, 9, {2, 2, 2, 2}}, Case{7, 7, {3, 3, 1, 1}},
                      Case{9, 8, {3, 3, 2, 2, 1, 1}}, Case{8, 9, {3, 2, 2, 3, 1, 0}},
                      Case{11, 10, {2, 3, 3, 4}}, Case{12, 11, {2, 1, 5, 3, 1, 0}},
                      Case{10, 7, {5, 4, 2, 3, 2, 1}}, Case{5, 5, {5, 5, 1, 1, 2, 2}},
                      Case{7, 4, {7, 4, 7, 4}}, Case{6, 1, {3, 1, 1, 2, 1, 0}}),
    [](const auto& info) { return "case" + std::to_string(info.index); });

}  // namespace
}  // namespace fl::testing
