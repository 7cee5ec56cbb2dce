// Assertions that tests of modules share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/ErrorOf.h"
#include "tests/Values.h"

namespace fl::test {

// Within +-bound, the farthest beyond reach * bound on both sides, balanced around 0.
inline void expectUniform(const Tensor& tensor, double bound, double reach) {
  const std::vector<float> values = valuesOf(tensor);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -bound * 1.000001);
  EXPECT_LE(*high, bound * 1.000001);
  EXPECT_LE(*low, -reach * bound);
  EXPECT_GE(*high, reach * bound);
  double sum = 0;
  for (float value : values) {
    sum += value;
  }
  const auto count = static_cast<double>(values.size());
  EXPECT_LE(std::abs(sum / count), 5 * bound / std::sqrt(3 * count));
}

// Mean and standard deviation within five of their own standard deviations.
inline void expectNormal(const Tensor& tensor, double mean, double deviation) {
  const std::vector<float> values = valuesOf(tensor);
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  double squares = 0;
  for (float value : values) {
    sum += value - mean;
    squares += (value - mean) * (value - mean);
  }
  EXPECT_LE(std::abs(sum / count), 5 * deviation / std::sqrt(count));
  EXPECT_NEAR(std::sqrt(squares / count), deviation, 5 * deviation / std::sqrt(2 * count));
}

}  // namespace fl::test
