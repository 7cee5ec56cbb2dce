// What is said of the environment when flags are read, once a process: each test is one of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

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

TEST(Flags, NumbersFitALong) {
  const auto errorOf = [](const std::string& bytes) -> std::string {
    Flags changed = flags();
    changed.cacheBytes = bytes;
    try {
      changed.validate();
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(errorOf("9223372036854775807"), "");
  EXPECT_EQ(errorOf("99999999999999999999"),
            "FL_CACHE_BYTES: \"99999999999999999999\" is too large a number");
  for (const char* value : {"", "-1", "x", "1x", "1.5"}) {
    EXPECT_EQ(errorOf(value),
              "FL_CACHE_BYTES: \"" + std::string(value) + "\" is not a number from 0 on");
  }
}

}  // namespace
}  // namespace fl::testing
