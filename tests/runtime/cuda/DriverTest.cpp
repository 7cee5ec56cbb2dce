// The table of the driver's functions against the toolkit's stub, which has them all and runs
// nothing; and what is said of drivers that are missing, old or without a device.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "fl/base/Flags.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/cuda/Driver.h"
#include "tests/ErrorOf.h"

namespace fl::runtime::cuda {
namespace {

CUresult wordsOf(CUresult, const char** words) {
  *words = "words";
  return CUDA_SUCCESS;
}
CUresult nameOf(CUresult, const char** name) {
  *name = "CUDA_NAME";
  return CUDA_SUCCESS;
}

// A driver of some version with some devices.
template <int version, int devices>
Driver driverOf() {
  Driver driver;
  driver.cuGetErrorString = wordsOf;
  driver.cuGetErrorName = nameOf;
  driver.cuDriverGetVersion = [](int* there) {
    *there = version;
    return CUDA_SUCCESS;
  };
  driver.cuInit = [](unsigned) { return devices < 0 ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS; };
  driver.cuDeviceGetCount = [](int* count) {
    *count = devices;
    return CUDA_SUCCESS;
  };
  return driver;
}

// Before any other asks for a driver: the library is opened once.
TEST(CudaDriver, AllFunctionsAreInTheToolkitsStub) {
  const std::filesystem::path folder = std::filesystem::path(std::getenv("TEST_TMPDIR")) / "stub";
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink("/usr/local/cuda/lib64/stubs/libcuda.so",
                                  folder / "libcuda.so.1");
  flags().cudaLib = folder;
  // It has them all, or the sentence would name the first that it lacks.
  EXPECT_EQ(driverProblem(), "CUDA: fl is built for CUDA 13.0, and " + folder.string() +
                                 "/libcuda.so.1 has no device: error 34");  // of a stub
  EXPECT_EQ(test::errorOf<std::runtime_error>([] { driver(); }), driverProblem());
  EXPECT_EQ(test::errorOf<std::runtime_error>([] { makeDevice("cuda"); }), driverProblem());
}

TEST(CudaDriver, OlderOnesAreNamedWithBothVersions) {
  installDriver(driverOf<12040, 1>());
  EXPECT_EQ(driverProblem(),
            "CUDA: fl is built for CUDA 13.0, and the installed one is a driver for CUDA 12.4, "
            "which is older");
  EXPECT_EQ(test::errorOf<std::runtime_error>([] { driver(); }), driverProblem());
}

TEST(CudaDriver, SaysThatThereIsNoDevice) {
  constexpr char kNone[] =
      "CUDA: fl is built for CUDA 13.0, and the installed one, a driver for CUDA 13.1, has no "
      "device: words (CUDA_NAME)";
  installDriver(driverOf<13010, 0>());
  EXPECT_EQ(driverProblem(), kNone);
  installDriver(driverOf<13010, -1>());
  EXPECT_EQ(driverProblem(), kNone);
  installDriver(driverOf<13010, 1>());
  EXPECT_EQ(driverProblem(), "");
}

}  // namespace
}  // namespace fl::runtime::cuda
