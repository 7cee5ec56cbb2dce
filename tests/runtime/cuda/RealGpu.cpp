#include "fl/codegen/cuda/Nvrtc.h"
#include "fl/runtime/cuda/Driver.h"
#include "tests/runtime/cuda/Gpu.h"

namespace fl::testing {

std::string gpuProblem() {
  const std::string& problem = runtime::cuda::driverProblem();
  return problem.empty() ? codegen::cuda::nvrtcProblem() : problem;
}

std::vector<std::string> takeMisuse() { return {}; }

}  // namespace fl::testing
