// Which devices there are depends on what fl was built with.
#include <gtest/gtest.h>

#include "fl/runtime/Device.h"
#include "tests/ErrorOf.h"

namespace fl::runtime {
namespace {

TEST(DeviceNames, AreListed) {
  EXPECT_EQ(test::errorOf([] { makeDevice("tpu"); }),
            FL_HAS_CUDA ? "device \"tpu\" does not exist; there are: cpu, cuda, null, ref"
                        : "device \"tpu\" does not exist; there are: cpu, null, ref");
  for (const char* name : {"cpu", "null", "ref"}) EXPECT_EQ(makeDevice(name)->name(), name);
}

TEST(DeviceNames, AGpuNeedsABuildWithCuda) {
  if (FL_HAS_CUDA) GTEST_SKIP() << "tests/runtime/cuda asks for one";
  EXPECT_EQ(test::errorOf([] { makeDevice("cuda"); }),
            "device \"cuda\": fl was built without CUDA, whose headers were not there");
}

}  // namespace
}  // namespace fl::runtime
