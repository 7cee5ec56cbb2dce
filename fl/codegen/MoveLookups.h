// The rule of canonicalize that moves lookups before the elementwise operators that made what they
// read: gather(map(x, y), i) = map(gather(x, i), gather(y, i)), where y that is the same along the
// axis stays as it is. What is looked up, as the scores of a cross entropy's labels, need not be
// computed everywhere and written to memory first.
#pragma once

#include "fl/ir/Graph.h"

namespace fl::codegen {

// What takes the place of a gather, or -1 if nothing is to be moved.
ir::ValueId moveLookup(ir::Graph& graph, const ir::Node& node);

}  // namespace fl::codegen
