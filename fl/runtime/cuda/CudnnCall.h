// An operator as calls of cuDNN: a graph of operations, by the plan that is the fastest here
// (Candidates.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fl/library/cuda/CudnnGraph.h"
#include "fl/runtime/cuda/DeviceCall.h"

namespace fl::runtime::cuda {

struct OperatorCall {
  ir::Op op = ir::Op::Conv2d;
  std::vector<ir::ValueType> operands;
  ir::Attrs attrs;
  ir::ValueType result;
  bool operator==(const OperatorCall&) const = default;
};

// "conv2d {...} f32[9,8] ...": tells calls apart.
std::string textOf(const OperatorCall& call);

// What a graph works on.
struct CudnnBuffers {
  // Of what has a number in the graph, in the order of these; the result is the last.
  std::vector<size_t> bytes;
  // A number behind them; CudnnGraph::addNumber().
  const float* number = nullptr;
};

// Null where cuDNN has no plan for the graph's operations that takes at most so much memory. `name`
// tells the graph from others. Throws library::cuda::CudnnRefusal.
std::shared_ptr<const DeviceCall> makeCudnnCall(Context& context,
                                                std::shared_ptr<library::cuda::CudnnGraph> graph,
                                                const std::string& name, CudnnBuffers buffers,
                                                bool onTensorCores, size_t mostWorkspaceBytes);

// What `make` gives, from a cache of the GPU's; null, and a warning, where it throws a refusal,
// and null where cuDNN is not there.
using CudnnMaker = std::shared_ptr<const DeviceCall> (*)(Context& context,
                                                         const OperatorCall& call);
std::shared_ptr<const DeviceCall> findCudnnCall(Context& context, const OperatorCall& call,
                                                CudnnMaker make);

}  // namespace fl::runtime::cuda
