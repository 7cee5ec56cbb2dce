// What is said of the environment when flags are read, once a process: each test is one of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "fl/base/Flags.h"

namespace fl::testing {
namespace {

TEST(Flags, AVariableThatIsNoneIsToldOnce) {
  setenv("FL_POISSON", "1", 1);
  setenv("FL_POISON", "1", 1);
  setenv("FL_TEST_SEED", "1", 1);
  setenv("FLOUR", "1", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(flags().poison, "1");
  EXPECT_EQ(flags().poison, "1");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "fl: FL_POISSON is no setting of fl, and changes nothing\n");
}

}  // namespace
}  // namespace fl::testing
