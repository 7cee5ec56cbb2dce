// Rules of canonicalize that move an operator, so that what it parted is fused.
#pragma once

#include <map>

#include "fl/codegen/Fusion.h"

namespace fl::codegen {

// Moves lookups before the elementwise operators that made what they read: gather(map(x, y), i) =
// map(gather(x, i), gather(y, i)), where y that is the same along the axis stays as it is. What is
// looked up, as the scores of a cross entropy's labels, need not be computed everywhere and written
// to memory first. What takes the place of a gather, or -1 if nothing is to be moved.
ir::ValueId moveLookup(ir::Graph& graph, const ir::Node& node);

// Computes sums along an axis of a few elements place by place, where maps make many elements of
// few, as of the differences between all points of one set and all of another: sum(f(x), axis) =
// f(x[0]) + f(x[1]) + ... Of sums along other axes, place by place, what all places share is
// computed once. Neither is then a reduction of its own, whose result or operand would be written
// for all pairs. Where sums along columns would become sums of rows, which are added up in another
// order, two axes of all that they are made of are swapped. What takes the place of a sum, or -1 if
// it stays.
ir::ValueId unrollSum(ir::Graph& graph, const ir::Node& node);

// Moves reshapes behind the elementwise operators and reductions that read them, where these can
// work in the shape before: map(reshape(x), y) = reshape(map(x, reshape(y))). A reshape between two
// operators would keep them in different iteration spaces, and so in different kernels; behind the
// last of them it is a view. Only reshapes that split dimensions are moved (or add some of 1), so
// that all spaces become the merged one. The reshape of the moved node, or -1 if nothing is to be
// moved.
ir::ValueId moveReshape(ir::Graph& graph, const ir::Node& node);

// Moves concatenations of a few parts behind chains of elementwise operators that alone read them:
// map(concatenate(x, y), z) = concatenate(map(x, z[:n]), map(y, z[n:])). Each part is then made in
// its place by a kernel that also makes x or y, or reads it where it lies, instead of copies of
// both that the map reads. Chains that end in memory alone: a reduction would be fused with them.
class JoinMover {
 public:
  explicit JoinMover(const ir::Graph& graph);

  // Called for each node of that graph, in order, with operands in a rewritten one: what takes its
  // place, or -1 if it stays.
  ir::ValueId move(ir::Graph& graph, const ir::Node& node);

 private:
  std::map<ir::ValueId, size_t> moved_;  // maps, and which operand is the concatenation
  size_t next_ = 0;
};

// The same elements in another shape: `id` itself where it has that.
ir::ValueId reshaped(ir::Graph& graph, ir::ValueId id, const Shape& shape, CallSite site);

// The `size` elements of each line along an axis that begin at `start`.
ir::ValueId sliceAlong(ir::Graph& graph, ir::ValueId id, Dim axis, Dim start, Dim size,
                       CallSite site);

}  // namespace fl::codegen
