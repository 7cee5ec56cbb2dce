// The CPU: kernels in the tile interpreter or compiled, library ops by oneDNN, other calls by the
// reference interpreter, all in the thread pool.
#pragma once

#include "fl/runtime/Device.h"

namespace fl::runtime::cpu {

std::unique_ptr<Device> makeCpuDevice();

}  // namespace fl::runtime::cpu
