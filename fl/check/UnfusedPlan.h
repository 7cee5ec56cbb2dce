// A graph that runs operator by operator on tier 0, as eager mode runs it: what stands in for a
// plan that the compiler failed to make. It shares no pass with the compiler.
#pragma once

#include <functional>
#include <memory>

#include "fl/ir/Graph.h"
#include "fl/ir/Interpreter.h"
#include "fl/runtime/Device.h"

namespace fl::check {

// Told of every operator that has run: its number in the graph, its operands and result, contiguous
// on the host. What it throws ends the run; what it gives back, unless that is null, takes the
// place of the result.
using Watch = std::function<MemoryBlockPtr(
    size_t number, const std::vector<ir::HostOperand>& operands, const MemoryBlockPtr& result)>;

class UnfusedPlan : public runtime::LoadedSchedule {
 public:
  virtual Outputs runWatched(std::span<const MemoryBlockPtr> buffers,
                             std::span<const Number> numbers, const Watch& watch) const = 0;
};

// The plan holds each value until its last use, in memory of its own.
std::unique_ptr<UnfusedPlan> makeUnfusedPlan(ir::Graph graph, runtime::Device& device,
                                             runtime::KernelCache* kernels);

}  // namespace fl::check
