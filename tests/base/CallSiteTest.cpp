// What a call site remembers beside the address.
#include <gtest/gtest.h>

#include <string>

#include "fl/base/CallSite.h"

namespace fl {
namespace {

TEST(CallSite, RemembersWhatWasIndexed) {
  CallSite site, other;
  EXPECT_EQ(site.indexed(), nullptr);
  site.setIndexed(Shape({4, 3, 2}));
  ASSERT_NE(site.indexed(), nullptr);
  EXPECT_EQ(*site.indexed(), Shape({4, 3, 2}));
  other.setIndexed(Shape({7}));
  other.setIndexed(site);
  EXPECT_EQ(other.indexed(), site.indexed());
  other.set(&site, "f");
  EXPECT_EQ(other.indexed(), site.indexed());
  other.setIndexed(CallSite());
  EXPECT_EQ(other.indexed(), nullptr);
}

TEST(CallSite, RemembersTheFirstShapesAndNamesAlone) {
  CallSite site, first;
  first.setIndexed(Shape({9, 1}));
  for (Dim i = 0; i < (1 << 14); ++i) site.setIndexed(Shape({9, i}));
  EXPECT_EQ(site.indexed(), nullptr);
  site.setIndexed(Shape({9, 1}));
  EXPECT_EQ(site.indexed(), first.indexed());

  const ModuleScope before("before");
  const CallSite known = currentCallSite();
  for (int i = 0; i < (1 << 16); ++i) ModuleScope(std::to_string(i));
  const ModuleScope late("late");
  EXPECT_EQ(currentCallSite().scope(), nullptr);
  const ModuleScope again("before");
  EXPECT_STREQ(currentCallSite().scope(), "before");
  EXPECT_STREQ(known.scope(), "before");
}

}  // namespace
}  // namespace fl
