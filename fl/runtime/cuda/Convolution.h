// Convolutions and their gradients by cuDNN, in full precision (CudnnGraph.h), of plain images and
// of those with their channels last.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "fl/runtime/cuda/CudnnGraph.h"
#include "fl/runtime/cuda/DeviceCall.h"

namespace fl::runtime::cuda {

struct ConvolutionCall {
  ir::Op op = ir::Op::Conv2d;
  std::vector<ir::ValueType> operands;
  ir::Attrs attrs;
  ir::ValueType result;
  bool operator==(const ConvolutionCall&) const = default;
};

// Tells cuDNN of a call; its operands' numbers are theirs in the call, the result's is the next.
// Needs no GPU. Throws CudnnRefusal.
void describe(CudnnGraph& graph, const ConvolutionCall& call);

class Convolution final : public DeviceCall {
 public:
  // From a cache of the process; null for other operators, and where cuDNN has none or is not
  // there.
  static std::shared_ptr<const Convolution> find(Context& context, const ConvolutionCall& call);

  size_t workspaceBytes() const override { return static_cast<size_t>(graph_.workspaceBytes()); }
  void run(Context& context, void* const* operands, void* result, void* workspace) const override;

 private:
  explicit Convolution(const ConvolutionCall& call);

  const size_t operands_;
  CudnnGraph graph_;
  bool isPlanned_ = false;
};

}  // namespace fl::runtime::cuda
