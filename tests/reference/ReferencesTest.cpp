// The comparison with reference answers fails on what differs.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/reference/References.h"

namespace fl::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool agrees(double actual, double expected, double ulps, dtype type = dtype::f32) {
  const Tensor answer = full({1}, expected, type);
  std::vector<uint8_t> bytes(answer.bytes());
  answer.host(static_cast<void*>(bytes.data()));
  return difference(full({1}, actual, type), {type, {1}, bytes}, ulps).empty();
}

TEST(References, InfinitiesAndNaNAgreeWithThemselvesAlone) {
  for (const dtype type : {dtype::f16, dtype::bf16, dtype::f32, dtype::f64}) {
    for (const double ulps : {0.0, 4.0}) {
      const double values[] = {kInfinity, -kInfinity, std::nan(""), 5, -0.5};
      for (const double& actual : values) {
        for (const double& expected : values) {
          EXPECT_EQ(agrees(actual, expected, ulps, type), &actual == &expected)
              << actual << " for " << expected << " of " << type << ", " << ulps << " ulps";
        }
      }
    }
  }
}

TEST(References, FloatsAgreeWithinTheirUnits) {
  const double next = 1 + std::numeric_limits<float>::epsilon();
  EXPECT_TRUE(agrees(next, 1, 1));
  EXPECT_FALSE(agrees(next, 1, 0.5));
  EXPECT_FALSE(agrees(next, 1, 0));
  EXPECT_FALSE(agrees(-0.0, 0.0, 0));
  EXPECT_FALSE(agrees(1e-30, 0.0, 4));
}

TEST(References, IntegersAreEqual) {
  EXPECT_TRUE(agrees(7, 7, 4, dtype::s32));
  EXPECT_FALSE(agrees(8, 7, 4, dtype::s32));
}

}  // namespace
}  // namespace fl::test
