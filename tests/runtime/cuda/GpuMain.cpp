// //tests:gpu: what is tested on a fake GPU elsewhere, on the machine's. It says what it runs on,
// and what it skips: everything, where there is no GPU.
#include <gtest/gtest.h>

#include <iostream>

#include "fl/codegen/cuda/Nvrtc.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/cuda/Driver.h"
#include "tests/runtime/cuda/Gpu.h"

namespace {

void describeGpu() {
  const fl::runtime::cuda::Driver& driver = fl::runtime::cuda::driver();
  int version = 0;
  CUdevice device = 0;
  char name[256] = {};
  driver.cuDriverGetVersion(&version);
  driver.cuDeviceGet(&device, 0);
  driver.cuDeviceGetName(name, sizeof(name), device);
  std::cout << "GPU: " << name << ", " << fl::runtime::makeDevice("cuda")->target().features
            << ", a driver for CUDA " << version / 1000 << "." << version % 1000 / 10 << ", "
            << fl::codegen::cuda::nvrtcIdentity() << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (const std::string problem = fl::testing::gpuProblem(); problem.empty()) {
    describeGpu();
  } else {
    std::cout << "no GPU: everything is skipped: " << problem << std::endl;
  }
  const int result = RUN_ALL_TESTS();
  const auto& all = *::testing::UnitTest::GetInstance();
  std::cout << "on a GPU: " << all.successful_test_count() << " passed, " << all.failed_test_count()
            << " failed, " << all.skipped_test_count() << " skipped" << std::endl;
  return result;
}
