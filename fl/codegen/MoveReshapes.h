// The rule of canonicalize that moves reshapes behind the elementwise operators and reductions that
// read them, where these can work in the shape before: map(reshape(x), y) = reshape(map(x,
// reshape(y))). A reshape between two operators would keep them in different iteration spaces, and
// so in different kernels; behind the last of them it is a view. Only reshapes that split
// dimensions are moved (or add some of 1), so that all spaces become the merged one.
#pragma once

#include "fl/ir/Graph.h"

namespace fl::codegen {

// The reshape of the moved node, or -1 if nothing is to be moved.
ir::ValueId moveReshape(ir::Graph& graph, const ir::Node& node);

}  // namespace fl::codegen
