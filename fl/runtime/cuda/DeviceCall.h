// A call of one of NVIDIA's libraries, or of a kernel that no plan has, prepared for the types of
// an operator. It may be run from any thread, and runs in the GPU's stream.
#pragma once

#include <memory>
#include <vector>

#include "fl/ir/Graph.h"
#include "fl/runtime/cuda/Context.h"

namespace fl::runtime::cuda {

class DeviceCall {
 public:
  virtual ~DeviceCall() = default;
  // Whether it is a kernel of fl, with the bits of the CPU's executors, that looks up indices:
  // behind its operands comes an ir::cuda::GatherReport for bad ones.
  virtual bool isKernel() const { return false; }
  // Of scratch memory on the GPU.
  virtual size_t workspaceBytes() const = 0;
  // Throws std::runtime_error for what the library refuses.
  virtual void run(Context& context, void* const* operands, void* result,
                   void* workspace) const = 0;
};

// Puts a copy of so many bytes between the GPU and pinned memory into the stream.
class HostMove final : public DeviceCall {
 public:
  HostMove(size_t bytes, bool toHost) : bytes_(bytes), toHost_(toHost) {}
  size_t workspaceBytes() const override { return 0; }
  void run(Context& context, void* const* operands, void* result, void*) const override;

 private:
  const size_t bytes_;
  const bool toHost_;
};

// Of an operator; null where no library has a good one, or the library is not there, which is told
// once: kernels stand in.
std::shared_ptr<const DeviceCall> findCall(Context& context, ir::Op op,
                                           const std::vector<ir::ValueType>& operands,
                                           const ir::Attrs& attrs, const ir::ValueType& result);

}  // namespace fl::runtime::cuda
