// GPUs of NVIDIA: kernels as cubins, launched on one stream; what has no kernel runs on the host.
#pragma once

#include <memory>

#include "fl/runtime/Device.h"

namespace fl::runtime::cuda {

// Throws std::runtime_error, in one sentence, if there is no driver that can run what fl is built
// for, or no device.
std::unique_ptr<Device> makeCudaDevice();

}  // namespace fl::runtime::cuda
