// Convolutions and their gradients by cuDNN, in full precision (CudnnGraph.h), of plain images and
// of those with their channels last.
#pragma once

#include <memory>
#include <vector>

#include "fl/library/cuda/CudnnGraph.h"
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
// Needs no GPU. Throws library::cuda::CudnnRefusal.
void describe(library::cuda::CudnnGraph& graph, const ConvolutionCall& call);

// From a cache of the process; null for other operators, and where cuDNN has no plan or is not
// there.
std::shared_ptr<const DeviceCall> findConvolution(Context& context, const ConvolutionCall& call);

}  // namespace fl::runtime::cuda
