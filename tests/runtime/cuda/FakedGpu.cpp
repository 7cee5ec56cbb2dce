#include "tests/runtime/cuda/FakeGpu.h"
#include "tests/runtime/cuda/Gpu.h"

namespace fl::testing {

std::string gpuProblem() {
  FakeGpu::install();
  return "";
}

std::vector<std::string> takeMisuse() {
  std::vector<std::string> misuse = FakeGpu::install().misuse();
  FakeGpu::install().reset();
  return misuse;
}

}  // namespace fl::testing
