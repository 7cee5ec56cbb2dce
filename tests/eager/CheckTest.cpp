// FL_CHECK=ref and nan are of the backend lazy; eager warns that it checks nothing.
#include <gtest/gtest.h>

#include "fl/base/Flags.h"
#include "fl/eager/EagerBackend.h"
#include "fl/fl.h"

namespace fl {
namespace {

std::string warningOf(const std::string& check, const std::string& device) {
  flags().check = check;
  ::testing::internal::CaptureStderr();
  makeEagerBackend(device);
  flags().check = "";
  return ::testing::internal::GetCapturedStderr();
}

TEST(EagerCheck, WarnsOfWhatIsNotChecked) {
  for (const std::string check : {"ref", "nan", "nan-log"}) {
    EXPECT_EQ(
        warningOf(check, "cpu"),
        "fl: FL_CHECK=" + check + " checks the plans of the backend lazy; eager runs unchecked\n");
  }
  for (const std::string check : {"", "verify", "guard"}) EXPECT_EQ(warningOf(check, "cpu"), "");
  // What lazy plans are compared with.
  EXPECT_EQ(warningOf("ref", "ref"), "");
}

TEST(EagerCheck, WarnsOnce) {
  flags().check = "nan";
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    const BackendScope scope("eager");
    EXPECT_EQ((full({2}, 1.f) + 1).toHostVector<float>(), (std::vector<float>{2, 2}));
  }
  const std::string words = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(words.find("FL_CHECK=nan"), words.rfind("FL_CHECK=nan"));
  EXPECT_NE(words.find("FL_CHECK=nan"), std::string::npos);
}

}  // namespace
}  // namespace fl
