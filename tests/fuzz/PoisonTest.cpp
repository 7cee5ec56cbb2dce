// Random programs have the same bits with FL_POISON=1 as without: no value depends on what its
// memory held before, or on memory that was given back. Fuzz.cpp runs any number of programs, of
// which all run on poisoned memory, too.
#include <gtest/gtest.h>

#include "tests/fuzz/Differential.h"

namespace fl::testing {
namespace {

class PoisonedPrograms : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(From, PoisonedPrograms, ::testing::Values(1000, 1100, 1200, 1300));

TEST_P(PoisonedPrograms, HaveTheBitsOfOthers) {
  for (int seed = GetParam(); seed < GetParam() + 100; ++seed) {
    EXPECT_EQ(comparePoisoned(seed), "")
        << "replay with bazel run //tests/fuzz -- --programs=1 --seed=" << seed;
  }
}

}  // namespace
}  // namespace fl::testing
