// A reduction to one element, cut at the chunks of its tree (Kernel.h), so that many threads share
// the work and the bits stay. CpuDevice.cpp runs the parts.
#pragma once

#include <optional>
#include <vector>

#include "fl/kernel/Kernel.h"

namespace fl::runtime::cpu {

// A part of a kernel, and where its operands come from.
struct KernelPart {
  ir::Kernel kernel;
  // One an operand: the operand of the whole kernel, or -1 - r for the total of its reduction r.
  std::vector<int> operands;
};

// First `chunks` for each chunk of axis 0, which gives the result of that chunk alone; then the
// caller folds these in order from each reduction's init on; then `finish` on the folded results.
struct RowChunks {
  KernelPart chunks;  // axis 0 within a chunk, reduced; axis 1 counts the chunks
  KernelPart finish;  // a map over one element
};

// Nothing for kernels of another form than one sweep over one axis that stores nothing, and one
// stage after it.
std::optional<RowChunks> cutIntoChunks(const ir::Kernel& kernel);

}  // namespace fl::runtime::cpu
