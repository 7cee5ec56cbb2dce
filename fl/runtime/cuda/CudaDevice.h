// GPUs of NVIDIA: kernels as cubins, launched on one stream; what has no kernel runs on the host.
#pragma once

#include <memory>
#include <string>

#include "fl/runtime/Device.h"

namespace fl::runtime::cuda {

// "cuda", the first GPU, or "cuda:1" and so on. Throws std::runtime_error, in one sentence, if
// there is no driver that can run what fl is built for, or no device, and std::invalid_argument,
// which names those that there are, if there is none of that number.
std::unique_ptr<Device> makeCudaDevice(const std::string& name);

}  // namespace fl::runtime::cuda
