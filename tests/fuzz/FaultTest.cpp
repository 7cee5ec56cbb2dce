// Random programs give the same bits while a part of the compiler fails (FL_FAULT): every pass, and
// the making of machine code.
#include <gtest/gtest.h>

#include "fl/base/Flags.h"
#include "fl/codegen/Compilation.h"
#include "fl/runtime/Counters.h"
#include "tests/fuzz/Differential.h"

namespace fl::testing {
namespace {

std::vector<std::string> places() {
  std::vector<std::string> names = {"emit"};
  for (const codegen::PassInfo& pass : codegen::passes()) {
    names.emplace_back(pass.name);
  }
  return names;
}

class Fault : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Places, Fault, ::testing::ValuesIn(places()),
                         [](const auto& test) { return test.param; });

TEST_P(Fault, LeavesEveryResultAsItIs) {
  // Programs of no other place, whose plans are made already.
  static uint64_t next = 70100;
  flags().fault = GetParam();
  for (int i = 0; i < 4; ++i) {
    const uint64_t before = runtime::counters().fallbacks, seed = next++;
    EXPECT_EQ(checkProgram(seed), "") << "seed " << seed;
    EXPECT_GT(runtime::counters().fallbacks, before);
  }
  flags().fault = "";
}

}  // namespace
}  // namespace fl::testing
