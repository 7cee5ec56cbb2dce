// The GPU that tests run on: one that is none (FakeGpu.h), or in //tests:gpu the machine's.
#pragma once

#include <string>
#include <vector>

namespace fl::testing {

// "" if there is a GPU, and a compiler of its kernels; else why not. To be called first.
std::string gpuProblem();

// What it was asked that a GPU does not forgive, since the last call. One that is real cannot say.
std::vector<std::string> takeMisuse();

}  // namespace fl::testing
