#include "tools/ReferenceSchedule.h"

#include <cstring>

#include "fl/definitions/GraphRunner.h"
#include "fl/tensor/tensor.h"
#include "tools/reference/KernelReference.h"

namespace fl::tools {

void ReferenceSchedule::runSteps(const Frame& frame) const {
  if (!runs_) {
    return clearOutputs(frame);
  }
  for (const ir::Step& step : schedule_.steps) {
    if (const auto* launch = std::get_if<ir::LaunchStep>(&step)) {
      runLaunch(*launch, frame);
      continue;
    }
    const auto& call = std::get<ir::LibraryStep>(step);
    ir::opKind(call.op) == ir::Kind::Library ? runDefinition(call, frame)
                                             : interpretCall(call, frame);
  }
}

void ReferenceSchedule::clearOutputs(const Frame& frame) const {
  for (size_t i = 0; i < frame.outputs.size(); ++i) {
    const ir::ValueType& type = schedule_.outputs[i].type;
    if (frame.outputs[i]) {
      std::memset(frame.outputs[i], 0, bytesOf(type.type, type.shape));
    }
  }
}

void ReferenceSchedule::runLaunch(const ir::LaunchStep& launch, const Frame& frame) const {
  const ir::Kernel& kernel = schedule_.kernels[launch.kernel];
  const LaunchData where = launchData(launch, frame);
  const std::vector<int64_t> extents(launch.extents.begin(), launch.extents.end());
  std::vector<int64_t> strides;
  for (const ir::LaunchOperand& operand : launch.operands) {
    strides.insert(strides.end(), operand.strides.begin(), operand.strides.end());
  }
  ir::BadIndex bad;
  const ir::KernelArgs args{where.data.data(), extents.data(), strides.data(), where.scalars.data(),
                            &bad};
  const int64_t domain = kernelDomain(kernel, extents.data());
  if (interpretKernel(kernel, args, 0, domain) >= 0) {
    throw ir::IndexOutOfRange(bad);
  }
}

void ReferenceSchedule::runDefinition(const ir::LibraryStep& call, const Frame& frame) const {
  const BackendScope scope("eager", "ref");
  ir::Graph graph;
  std::vector<ir::ValueId> operands;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const ir::ValueType& type = call.operandTypes[i];
    operands.push_back(graph.addParameter({type, false}));
    const auto* data = static_cast<const uint8_t*>(addressOf(call.operands[i], type, frame));
    tensors.push_back(Tensor::fromBuffer(type.shape, type.type, data, Location::Host));
  }
  graph.setResults({graph.addNode(call.op, operands, call.attrs)});
  runGraph(graph, tensors)[0].host(addressOf(call.result, call.resultType, frame));
}

}  // namespace fl::tools
