// The MLIR emitter: graphs (fl/ir/Graph.h) of primitive operators to text in the dialects func,
// linalg on tensors, tensor, scf, arith and math.
//
// A graph is a function of ranked tensors of static shapes; shapes are reversed, because MLIR's
// last dimension is the contiguous one. Numbers are tensors of rank 0. Maps, views, lookups,
// reductions and products are linalg.generic; what writes to computed places (joins, updates,
// scans) are loops of scf that carry a tensor. Floats are summed in f64.
//
// An index that data gives is held in range, and for each operator that takes such indices (kind
// Index, and Scatter and ScatterAdd) the function has one more result, an s64: 0, or an index that
// was out of range. lookups() has them in order.
//
// Relies on ir and on fl/codegen/cuda/CodeText.h; no library of MLIR. Jit.h lowers and runs the
// text.
#pragma once

#include <string>
#include <vector>

#include "fl/ir/Graph.h"

namespace fl::codegen::mlir {

struct NamedGraph {
  std::string name;
  const ir::Graph* graph;
  // Of the last parameters, which are no parameters of the function then.
  std::vector<Number> constants = {};
};

// One module. Throws InternalError for an operator of kind Library, which has a definition in
// primitive ones (fl/definitions/Trace.h).
std::string emitMlir(const std::vector<NamedGraph>& graphs);

struct Lookup {
  ir::ValueId node;
  Dim bound;  // indices are from 0 to below it
};
std::vector<Lookup> lookups(const ir::Graph& graph);

}  // namespace fl::codegen::mlir
