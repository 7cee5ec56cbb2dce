// Runs a graph of the IR as a tensor program: each node is one call on the backend in scope, so
// that a graph that was dumped on one backend runs on every other (`fl run`).
#pragma once

#include <vector>

#include "fl/ir/Graph.h"
#include "fl/tensor/TensorBase.h"

namespace fl {

// The graph's results on `parameters`, which have the types that the graph states; one that is a
// number there may be any tensor of its type. Throws std::invalid_argument for another type.
std::vector<Tensor> runGraph(const ir::Graph& graph, const std::vector<Tensor>& parameters);

}  // namespace fl
