// Static objects of a program are made before there is a backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"

namespace fl::testing {
namespace {

const std::string kError = test::errorOf([] { full({3}, 0.5); });

TEST(Static, TensorsAreMadeInMain) {
  EXPECT_THAT(kError,
              ::testing::HasSubstr("does not exist; there are: none before main() has begun"));
  EXPECT_EQ(full({3}, 0.5).toHostVector<float>(), std::vector<float>(3, 0.5F));
}

}  // namespace
}  // namespace fl::testing
