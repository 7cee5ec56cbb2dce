// Static objects of a program may be tensors, and may compute before main() begins.
#include <gtest/gtest.h>

#include "fl/tensor/tensor.h"

namespace fl::testing {
namespace {

const Tensor kMean = full({3}, 0.5);
const float kSum = sum(exp(kMean) * 0 + kMean).scalar<float>();
const float kEagerSum = [] {
  const BackendScope eager("eager");
  return sum(kMean + 1).scalar<float>();
}();

TEST(Static, TensorsAreMadeBeforeMain) {
  EXPECT_EQ(kSum, 1.5F);
  EXPECT_EQ(kEagerSum, 4.5F);
  EXPECT_EQ((kMean * 2).toHostVector<float>(), std::vector<float>(3, 1));
}

}  // namespace
}  // namespace fl::testing
