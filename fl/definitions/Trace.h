// The operators of a function of tensors as a graph, found by running the function on a backend
// that computes nothing.
#pragma once

#include <optional>
#include <vector>

#include "fl/ir/Interpreter.h"
#include "fl/tensor/Composite.h"

namespace fl {

struct Trace {
  ir::Graph graph;                // of the call's operands and, behind them, the constants
  std::vector<Number> constants;  // numbers that the function makes
};

// Nothing if no graph can stand for the call: it reads elements, asks for a number that changes
// from call to call (hostNumber(), random numbers), calls a library, uses a tensor that is none of
// its operands, or returns a number, which is in no memory. Throws what the function throws.
std::optional<Trace> trace(const CompositeCall& call);

// The graph with its ops of kind Library replaced by their definitions in primitive ones.
Trace expandLibrary(const ir::Graph& graph);

// ir::interpret, of ops of kind Library too: by their definitions.
void interpretCall(ir::Op op, const std::vector<ir::HostOperand>& operands, const ir::Attrs& attrs,
                   const ir::ValueType& type, void* result);

}  // namespace fl
