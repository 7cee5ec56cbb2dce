// A bounded run of the fuzzer (Differential.h); Fuzz.cpp is the long one.
#include <gtest/gtest.h>

#include "fl/base/Flags.h"
#include "tests/fuzz/Differential.h"

namespace fl::testing {
namespace {

TEST(Fuzz, EveryModeGivesTheSameBits) {
  flags().check = "verify";
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    EXPECT_EQ(checkProgram(seed), "")
        << "replay with bazel run //tests/fuzz -- --programs=1 --seed=" << seed;
  }
}

TEST(Fuzz, CountsWhatItCalls) {
  checkProgram(1);
  EXPECT_NE(describe(callCounts(), 1).find("\nadd: "), std::string::npos);
}

}  // namespace
}  // namespace fl::testing
