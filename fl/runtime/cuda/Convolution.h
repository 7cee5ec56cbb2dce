// Convolutions and their gradients by cuDNN (CudnnGraph.h), of plain images and of those with their
// channels last.
#pragma once

#include <memory>

#include "fl/runtime/cuda/CudnnCall.h"

namespace fl::runtime::cuda {

// Tells cuDNN of a call; its operands' numbers are theirs in the call, the result's is the next.
// Needs no GPU. Throws library::cuda::CudnnRefusal.
void describe(library::cuda::CudnnGraph& graph, const OperatorCall& call);

// Which f32 may on request alone: they cut it to TF32.
bool mayUseTensorCores(const OperatorCall& call);

// Null for other operators, and where cuDNN has no plan or is not there.
std::shared_ptr<const DeviceCall> findConvolution(Context& context, const OperatorCall& call);

}  // namespace fl::runtime::cuda
