// What is said of the environment when flags are read, once a process: each test is one of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "fl/base/Flags.h"

namespace fl::testing {
namespace {

TEST(Flags, AVariableThatIsNoneIsToldOnce) {
  setenv("FL_POISON", "1", 1);
  setenv("FL_CHECK", "poison", 1);
  setenv("FL_TEST_SEED", "1", 1);
  setenv("FLOUR", "1", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(flags().check, "poison");
  EXPECT_EQ(flags().check, "poison");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "fl: FL_POISON is no setting of fl, and changes nothing\n");
}

}  // namespace
}  // namespace fl::testing
