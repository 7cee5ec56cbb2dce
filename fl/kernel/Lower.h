// Lowers one node to steps: a kernel of its own, or a library call. Eager execution runs these
// steps as they are; the compiler uses them for what it does not fuse, so that fused and unfused
// agree.
#pragma once

#include "fl/kernel/Strided.h"

namespace fl::ir {

// Kernels for what the kernel form can hold, or a call of the op's own routine for every node (on
// devices that interpret).
enum class Lowering { Kernels, Calls };

// Memory that holds an operand's elements. Operands that are numbers have none, and one that
// repeats a number may stand for it.
struct OperandSource {
  BufferRef buffer;
  StridedLayout layout;
  std::optional<ValueId> number = {};
};

// True if the op's steps need operands whose elements follow in order; otherwise any layout will
// do.
bool needsDenseOperands(Op op, Lowering lowering);

// True if the op's steps write a part of the result: it is its first operand, and the result has
// that one's elements before.
bool writesBox(Op op, Lowering lowering);

// Where the operands of a Join lie in its result, itself laid out as `whole`: all of a
// concatenation, the first of a padding.
std::vector<StridedLayout> partLayouts(const Graph& graph, const Node& node, StridedLayout whole);
// Whether `node` is a padding that is filled around its operand; a small one is filled all over.
bool fillsAround(const Node& node);

// Appends the steps that compute `node` into the contiguous `result`, whose offset has no terms.
// False, and no steps, if the kernel form cannot hold these layouts; operands whose elements follow
// in order always succeed. Those of partLayouts() that are in the result's buffer are in place.
bool lowerNode(const Graph& graph, const Node& node, const std::vector<OperandSource>& operands,
               const BufferPlace& result, Lowering lowering, Schedule* schedule);

// The schedule of a graph with a single node, whose result is output 0.
Schedule scheduleSingleNode(const Graph& graph, Lowering lowering);

}  // namespace fl::ir
