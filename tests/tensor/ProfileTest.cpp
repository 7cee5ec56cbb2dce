// The time of named pieces of a program, as the log has it.
#define FL_BUILD_PROFILING 1
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>

#include "fl/tensor/Profile.h"

namespace fl {
namespace {

std::string logFile() { return std::string(std::getenv("TEST_TMPDIR")) + "/profile.log"; }

// Flags are read once, at their first use.
const bool chosen = setenv("FL_LOG", ("2," + logFile()).c_str(), 1) == 0;

std::string readLog() {
  std::ifstream file(logFile());
  return {std::istreambuf_iterator<char>(file), {}};
}

void piece(int calls) {
  for (int i = 0; i < calls; ++i) {
    FL_PROFILE_TRACE("piece");
  }
}

TEST(Profile, SumsPiecesWhileProfiled) {
  ASSERT_TRUE(chosen);
  piece(1);
  {
    FL_SCOPED_PROFILE();
    FL_PROFILE_TRACE("not over yet");
    piece(3);
    {
      FL_SCOPED_PROFILE();
      piece(2);
    }
    EXPECT_EQ(readLog(), "");
  }
  const std::regex line(
      "profile: not over yet: 1 calls, [0-9.e+-]+ ms\n"
      "profile: piece: 5 calls, [0-9.e+-]+ ms\n");
  EXPECT_TRUE(std::regex_match(readLog(), line)) << readLog();
}

}  // namespace
}  // namespace fl
