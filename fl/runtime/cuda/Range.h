// Names for NVIDIA's tools, which show them beside what the GPU does.
#pragma once

#include "nvtx3/nvToolsExt.h"

namespace fl::runtime::cuda {

// What this thread puts into streams while it lives has a name. NVTX looks for a tool at the first
// one; without one, others cost a test of a pointer.
class Range {
 public:
  explicit Range(const char* name) { nvtxRangePushA(name); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
};

}  // namespace fl::runtime::cuda
