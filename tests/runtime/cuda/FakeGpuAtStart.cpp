// Linked into a test program, gives it a GPU that is none where FL_DEVICE=cuda asks for one, and
// fails it for what no GPU forgives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/runtime/cuda/FakeGpu.h"

namespace fl::testing {
namespace {

class NoMisuse : public ::testing::Environment {
  void TearDown() override { EXPECT_THAT(FakeGpu::install().misuse(), ::testing::ElementsAre()); }
};

[[maybe_unused]] const bool isInstalled = [] {
  const char* device = std::getenv("FL_DEVICE");
  if (device == nullptr || std::string(device) != "cuda") return false;
  FakeGpu::install();
  ::testing::AddGlobalTestEnvironment(new NoMisuse());
  return true;
}();

}  // namespace
}  // namespace fl::testing
