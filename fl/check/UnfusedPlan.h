// A graph that runs operator by operator on tier 0, as eager mode runs it: what stands in for a
// plan that the compiler failed to make. It shares no pass with the compiler.
#pragma once

#include <functional>
#include <memory>

#include "fl/ir/Graph.h"
#include "fl/ir/Interpreter.h"
#include "fl/runtime/Device.h"

namespace fl::check {

// Told of every operator that has run: its operands and result, contiguous on the host. What it
// throws ends the run.
using Watch = std::function<void(const ir::Node& node, const std::vector<ir::HostOperand>& operands,
                                 const void* result)>;

// The plan holds each value until its last use, in memory of its own.
std::unique_ptr<runtime::LoadedSchedule> makeUnfusedPlan(ir::Graph graph, runtime::Device& device,
                                                         runtime::KernelCache* kernels,
                                                         Watch watch = nullptr);

}  // namespace fl::check
