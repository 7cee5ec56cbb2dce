// A graph that runs operator by operator on tier 0, as eager mode runs it: what stands in for a
// plan that the compiler failed to make. It shares no pass with the compiler.
#pragma once

#include <memory>

#include "fl/ir/Graph.h"
#include "fl/runtime/Device.h"

namespace fl::lazy {

// The plan holds each value until its last use, in memory of its own.
std::unique_ptr<runtime::LoadedSchedule> makeUnfusedPlan(ir::Graph graph, runtime::Device& device,
                                                         runtime::KernelCache* kernels);

}  // namespace fl::lazy
