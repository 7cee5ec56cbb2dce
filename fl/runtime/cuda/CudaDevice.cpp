#include "fl/runtime/cuda/CudaDevice.h"

#include <stdexcept>

#include "fl/runtime/cuda/Driver.h"

namespace fl::runtime::cuda {

std::unique_ptr<Device> makeCudaDevice() {
  driver();
  throw std::runtime_error("CUDA: nothing runs on a device yet");
}

}  // namespace fl::runtime::cuda
