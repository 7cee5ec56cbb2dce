// What an epilogue does to the memory of the call that it follows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fl/kernel/Schedule.h"
#include "fl/planner/Planner.h"
#include "fl/planner/Reuse.h"
#include "tests/ErrorOf.h"

namespace fl::testing {
namespace {

// o0 = p0 p1; o1 = o0 + p1, of the size of all.
std::string schedule(const std::string& epilogue) {
  return "schedule @s arena=0 bound=0 {\n"
         "  parameter f32[8,8]\n"
         "  parameter f32[8,8]\n"
         "  output f32[8,8]\n"
         "  output f32[8,8]\n"
         "kernel @k0 rank=1 reduced=[] {\n"
         "  operand input f32 [1]\n"
         "  operand input f32 [1]\n"
         "  operand output f32 [1]\n"
         "  %0 = load 0 : f32\n"
         "  %1 = load 1 : f32\n"
         "  %2 = add %0, %1 : f32\n"
         "  stage { store 2 %2 }\n"
         "}\n"
         "  library matmul {transposeLhs=0, transposeRhs=0} (p0: f32[8,8], p1: f32[8,8]) -> o0: "
         "f32[8,8]\n"
         "  launch 0 extents=[64] operands(o0+0[1], p1+0[1], o1+0[1]) numbers=[]" +
         epilogue + "\n}\n";
}

TEST(EpilogueTest, IsPartOfTheText) {
  ir::Schedule planned = ir::parseSchedule(schedule(""));
  planner::attachEpilogues(&planned);
  EXPECT_EQ(printSchedule(planned, "s"), schedule(" epilogue"));
  EXPECT_EQ(printSchedule(ir::parseSchedule(schedule(" epilogue")), "s"), schedule(" epilogue"));
}

// Parts of the call still read the parameter while the epilogue writes.
TEST(EpilogueTest, WritesNotWhereTheCallReads) {
  using Parameters = std::vector<std::vector<int>>;
  EXPECT_EQ(planner::reusableParameters(ir::parseSchedule(schedule(""))), (Parameters{{}, {1}}));
  EXPECT_EQ(planner::reusableParameters(ir::parseSchedule(schedule(" epilogue"))),
            (Parameters{{}, {}}));
}

TEST(EpilogueTest, KeepsTheOperandsOfTheCallAlive) {
  std::string text = schedule(" epilogue");
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("arena=0 bound=0", "arena=256 bound=256");
  replace("kernel", "temporary bytes=256 first=0 last=1 offset=0\nkernel");
  replace("  library matmul",
          "  launch 0 extents=[64] operands(p0+0[1], p1+0[1], t0+0[1]) "
          "numbers=[]\n  library matmul");
  replace("(p0: f32[8,8]", "(t0: f32[8,8]");
  const auto error = [&] {
    return test::errorOf<std::exception>([&] { ir::parseSchedule(text); });
  };
  EXPECT_THAT(error(), ::testing::HasSubstr("temporary 0 is not alive at step 2"));
  replace("last=1", "last=2");
  EXPECT_EQ(error(), "");
}

}  // namespace
}  // namespace fl::testing
