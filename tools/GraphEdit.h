// Edits of a graph that make it smaller, for `fl reduce`. A graph that results is a new one: nodes
// and parameters that no result needs are dropped, unless it is to keep those nodes, and types are
// inferred again.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "fl/ir/Graph.h"

namespace fl::tools {

struct GraphEdit {
  // A value is another one, defined before it.
  std::map<ir::ValueId, ir::ValueId> replaced = {};
  // A value becomes an input: of its type, or a number of its dtype.
  std::map<ir::ValueId, bool> inputs = {};  // true for a number
  // The results, if they are others.
  std::optional<std::vector<ir::ValueId>> results = {};
  // Extents of parameters, by parameter and dimension.
  std::map<std::pair<ir::ValueId, int>, Dim> extents = {};
  // Attributes, by node and position.
  std::map<std::pair<ir::ValueId, size_t>, Dim> attrs = {};
  // Nodes that no result needed before the edit stay, but for those that it makes something else.
  bool keepsUnread = false;
};

// By value, whether the edited graph's results depend on it.
std::vector<bool> neededValues(const ir::Graph& graph, const GraphEdit& edit);

// Nothing if types do not fit: a changed extent, say, where two operands must have equal ones.
std::optional<ir::Graph> applyEdit(const ir::Graph& graph, const GraphEdit& edit);

// Nodes, results, parameters, parameters that are no numbers, elements of all values: what is to
// become smaller, the first of them first.
using GraphSize = std::tuple<size_t, size_t, size_t, size_t, Dim>;
GraphSize sizeOf(const ir::Graph& graph);

}  // namespace fl::tools
