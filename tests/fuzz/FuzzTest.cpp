// A bounded run of the fuzzer (Differential.h); Fuzz.cpp is the long one.
#include <gtest/gtest.h>

#include "fl/base/Flags.h"
#include "fl/runtime/Counters.h"
#include "fl/tensor/tensor.h"
#include "tests/fuzz/Differential.h"
#include "tests/fuzz/RandomProgram.h"

namespace fl::testing {
namespace {

TEST(Fuzz, EveryModeGivesTheSameBits) {
  flags().check = "verify";
  const uint64_t recomputed = runtime::counters().stepsRecomputed;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    EXPECT_EQ(checkProgram(seed), "")
        << "replay with bazel run //tests/fuzz -- --programs=1 --seed=" << seed;
  }
  EXPECT_GT(runtime::counters().stepsRecomputed - recomputed, 200u);
}

TEST(Fuzz, ProgramsThatWereWrong) {
  flags().check = "verify";
  // A kernel computes again, beside what is updated in place, what may not be computed again by
  // itself.
  EXPECT_EQ(checkProgram(501918), "");
  // Of launches that run together one fills what another was the last to have, which is not poison.
  EXPECT_EQ(checkProgram(2026171203), "");
}

// So that products are made in the midst of buffers, and read there.
TEST(Fuzz, DrawsPartsOfProducts) {
  const BackendScope scope("eager");
  int joined = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    RandomProgram program({seed});
    program.run();
    joined += program.text().find("two such products along") != std::string::npos;
  }
  EXPECT_GT(joined, 3);
}

TEST(Fuzz, CountsWhatItCalls) {
  checkProgram(1);
  EXPECT_NE(describe(callCounts()).find("\nadd: "), std::string::npos);
}

TEST(Fuzz, NamesWhatItCallsTooSeldom) {
  CallCounts calls;
  for (auto& ofOp : calls) {
    ofOp.fill(5);
  }
  EXPECT_EQ(thinCells(calls, 5), std::vector<std::string>());
  calls[static_cast<int>(ir::Op::Exp)][static_cast<int>(dtype::bf16)] = 4;
  calls[static_cast<int>(ir::Op::Exp)][static_cast<int>(dtype::s32)] = 0;  // exp casts them first
  EXPECT_EQ(thinCells(calls, 5), std::vector<std::string>{"exp bf16 4"});
}

}  // namespace
}  // namespace fl::testing
