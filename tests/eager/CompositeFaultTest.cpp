// Runs with FL_FAULT=fuse: no composite's plan can be made.
#include <gtest/gtest.h>

#include "fl/fl.h"
#include "fl/runtime/Counters.h"

namespace fl {
namespace {

TEST(EagerComposite, RunsOperatorByOperatorIfAPassFails) {
  const BackendScope scope("eager", "cpu");
  const Tensor x = rand({100, 8});
  const uint64_t before = runtime::counters().kernelLaunches;
  const Tensor deviation = fl::std(x, {0});
  EXPECT_GT(runtime::counters().kernelLaunches - before, 3u);
  EXPECT_EQ(runtime::counters().fallbacks, 2u);  // of std, and of the mean in it
  const Tensor centered = x - mean(x, {0}, true);
  EXPECT_EQ(deviation.toHostVector<float>(),
            sqrt(sum(centered * centered, {0}) / 100.0).toHostVector<float>());
}

}  // namespace
}  // namespace fl
