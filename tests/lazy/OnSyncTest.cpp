// What reads of pending values do: they are counted, warned about, or refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "fl/lazy/LazyBackend.h"
#include "fl/profile/Profile.h"
#include "fl/runtime/Counters.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"

namespace fl::test {
namespace {

using ::testing::HasSubstr;

class OnSyncTest : public ::testing::Test {
 protected:
  ~OnSyncTest() override { setOnSync(OnSync::Allow); }
};

TEST_F(OnSyncTest, ReadsOfWhatIsPendingAreCounted) {
  const Tensor x = full({3}, 2.0f) * 3;
  const uint64_t before = runtime::counters().reads;
  EXPECT_EQ(sum(x).scalar<float>(), 18);
  EXPECT_EQ(runtime::counters().reads, before + 1);
  x.toHostVector<float>();
  EXPECT_EQ(runtime::counters().reads, before + 1) << "it was computed already";
  const Tensor y = x + 1;
  sync();
  y.toHostVector<float>();
  EXPECT_EQ(runtime::counters().reads, before + 1);
}

TEST_F(OnSyncTest, AWarningForEachLine) {
  setOnSync(OnSync::Warn);
  ::testing::internal::CaptureStderr();
  int line = 0;
  for (int i = 0; i < 3; ++i) {
    (full({3}, 2.0f) * i).toHostVector<float>(), line = __LINE__;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "fl: a read runs what is pending, at tests/lazy/OnSyncTest.cpp:" +
                std::to_string(line) + "\n");
}

std::string here(int line) { return "tests/lazy/OnSyncTest.cpp:" + std::to_string(line); }

TEST_F(OnSyncTest, ReadsAreCountedByLine) {
  const auto before = reads();
  full({3}, 2.0f).toHostVector<float>();
  EXPECT_EQ(reads(), before) << "nobody asks";
  setOnSync(OnSync::Warn);
  ::testing::internal::CaptureStderr();
  int often = 0, once = 0;
  for (int i = 0; i < 3; ++i) {
    const Tensor x = full({3}, 2.0f) * i;
    sum(x).scalar<float>(), often = __LINE__;
    x.toHostVector<float>();  // was computed with it
  }
  full({3}, 2.0f).toHostVector<float>(), once = __LINE__;
  setOnSync(OnSync::Allow);
  full({3}, 2.0f).toHostVector<float>();
  const std::string words = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(words, '\n'), 2) << "a warning a line";
  auto want = before;
  want[here(often)] = 3;
  want[here(once)] = 1;
  EXPECT_EQ(reads(), want);
}

// From its start on, and in its table.
TEST_F(OnSyncTest, ReadsOfAProfileAreCounted) {
  startProfile(::testing::TempDir() + "/trace.json");
  EXPECT_THAT(reads(), ::testing::IsEmpty());
  int line = 0;
  for (int i = 0; i < 5; ++i) {
    (full({3}, 2.0f) * i).toHostVector<float>(), line = __LINE__;
  }
  ::testing::internal::CaptureStderr();
  stopProfile();
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      ::testing::EndsWith("    reads  of what was pending\n        5  at " + here(line) + "\n"));
  (full({3}, 2.0f) * 7).toHostVector<float>();
  EXPECT_EQ(reads(), (std::map<std::string, uint64_t>{{here(line), 5}}));
}

TEST_F(OnSyncTest, AnErrorThatLosesNothing) {
  setOnSync(OnSync::Throw);
  const Tensor x = full({3}, 2.0f) * 4;
  int line = 0;
  const std::string words = errorOf([&] { line = __LINE__, x.toHostVector<float>(); });
  EXPECT_THAT(words, HasSubstr("a read would run what is pending, which FL_ON_SYNC forbids, at "
                               "tests/lazy/OnSyncTest.cpp:" +
                               std::to_string(line)));
  sync();
  EXPECT_EQ(x.toHostVector<float>(), (std::vector<float>{8, 8, 8}));
}

}  // namespace
}  // namespace fl::test
