// What reads of pending values do: they are counted, warned about, or refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl/lazy/LazyBackend.h"
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
