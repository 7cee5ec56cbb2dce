// A call of one of NVIDIA's libraries, prepared for the types of an operator. It may be run from
// any thread, and runs in the GPU's stream.
#pragma once

#include <memory>
#include <vector>

#include "fl/ir/Graph.h"
#include "fl/runtime/cuda/Context.h"

namespace fl::runtime::cuda {

class DeviceCall {
 public:
  virtual ~DeviceCall() = default;
  // Of scratch memory on the GPU.
  virtual size_t workspaceBytes() const = 0;
  // Throws std::runtime_error for what the library refuses.
  virtual void run(Context& context, void* const* operands, void* result,
                   void* workspace) const = 0;
};

// Of an operator; null where no library has a good one, or the library is not there, which is told
// once: kernels stand in.
std::shared_ptr<const DeviceCall> findCall(Context& context, ir::Op op,
                                           const std::vector<ir::ValueType>& operands,
                                           const ir::Attrs& attrs, const ir::ValueType& result);

}  // namespace fl::runtime::cuda
