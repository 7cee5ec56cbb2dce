// Linked into a test program, fails each test in which a region of a plan ran unfused, as a pass or
// the emitter failed.
#include <gtest/gtest.h>

#include "fl/runtime/Counters.h"

namespace fl::testing {
namespace {

class NoFallbacks : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { before_ = runtime::counters().fallbacks; }
  void OnTestEnd(const ::testing::TestInfo&) override {
    EXPECT_EQ(runtime::counters().fallbacks, before_) << "regions ran unfused";
  }
  uint64_t before_ = 0;
};

[[maybe_unused]] const bool isListening = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new NoFallbacks());
  return true;
}();

}  // namespace
}  // namespace fl::testing
