// Scatter and ScatterAdd as one launch of a kernel that is written by hand
// (fl/codegen/cuda/Scatter.cpp), for fl/runtime/cuda.
//
// A block takes some elements of one line of `from`. If the line is the first of its place, the
// block adds the lines that follow it there in their order; if it is the last, it replaces. So
// nothing is summed by two, and values are those of the CPU to the bit. Blocks find that out by
// reading the index from end to end: of 1000 lines an instant, but the square of their number in
// all. What would take long (kMostReads) is not for it. Lists of the lines of each place would be
// linear, but take four launches, with a sort that keeps order.
#pragma once

#include <optional>

#include "fl/ir/Graph.h"
#include "fl/kernel/cuda/Launch.h"

namespace fl::ir::cuda {

// What a launch works on. One index stands for lineInner x lineOuter elements of `from`.
struct ScatterShape {
  int64_t inner, length, bound;  // of `from`, in elements; `bound` is the result's length
  int64_t indexInner, indexOuter;
  int64_t lineInner, lineOuter;
  bool operator==(const ScatterShape&) const = default;
};

// Index words that all blocks together may read: some 5 ms on a GPU with 5 TB/s of cache.
inline constexpr int64_t kMostReads = int64_t{1} << 32;

// None for an index that repeats in a part of the axes on one side of its own, and for what takes
// too long.
std::optional<ScatterShape> scatterShape(const std::vector<ValueType>& operands, const Attrs& attrs,
                                         const ValueType& result);

// No blocks: nothing is written.
Launch launchOf(const ScatterShape& shape);
// The result has the elements of the first operand already.
std::vector<uint64_t> packArguments(const ScatterShape& shape, void* result, const void* index,
                                    const void* from, GatherReport* report);

// The entry of its code.
inline constexpr char kScatterEntry[] = "scatter";

}  // namespace fl::ir::cuda
