// What FakeGpu says that it is: devices of compute capability 9.0, one unless told otherwise.
#pragma once

#include <cstddef>

#include "fl/runtime/cuda/Driver.h"

namespace fl::testing {

constexpr size_t kFakeMemory = size_t{4} << 30;
constexpr int kFakeSharedBytes = 227 << 10;  // to which a function may be set

constexpr int kMostFakeDevices = 2;
void setFakeDevices(int count);
// That of the calling thread, null at first.
CUcontext currentFakeContext();

// Sets the functions that tell it.
void describeFakeDevice(runtime::cuda::Driver* table);

}  // namespace fl::testing
