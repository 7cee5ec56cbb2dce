// NVRTC's functions as a table, so that a test can put a compiler of its own in its place.
#pragma once

#include <nvrtc.h>

namespace fl::codegen::cuda {

struct NvrtcApi {
#define FL_NVRTC(function) decltype(&::function) function = nullptr;
#include "fl/codegen/cuda/Nvrtc.def"
#undef FL_NVRTC
};

// For tests: the compiler of this process. Before any other call of Nvrtc.h.
void installNvrtc(const NvrtcApi& table);

}  // namespace fl::codegen::cuda
