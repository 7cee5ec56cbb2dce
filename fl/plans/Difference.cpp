#include "fl/plans/Difference.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

#include "fl/base/Error.h"
#include "fl/ir/Text.h"

namespace fl::plans {
namespace {

using detail::concat;
using ir::Graph;
using ir::Node;
using ir::ValueId;

// Of node `i` and node `j`: operands are the same parameters or the results of nodes as far back.
bool isSame(const Graph& x, size_t i, const Graph& y, size_t j) {
  const Node &a = x.nodes()[i], &b = y.nodes()[j];
  const auto isSameValue = [&](ValueId k, ValueId l) {
    return x.isParameter(k) ? k == l && y.isParameter(l) : x.idOfNode(i) - k == y.idOfNode(j) - l;
  };
  return a.op == b.op && a.attrs == b.attrs && a.type == b.type &&
         std::ranges::equal(a.operands, b.operands, isSameValue);
}

// "%1 = exp %0 : f32[8]  // A.cpp:3" of node `index`.
std::string lineOf(const Graph& graph, size_t index) {
  std::istringstream text(printGraph(graph, "g", {.callSites = true}));
  std::string line;
  for (size_t i = 0; i < index + 2; ++i) std::getline(text, line);
  return line.substr(line.find_first_not_of(' '));
}

std::string describe(const ir::Parameter& parameter) {
  return (parameter.number ? "number " : "") + parameter.type.toString();
}

// The first of `some` results, as the number of its node, that is not among `others`.
std::optional<size_t> onlyIn(const Graph& some, const Graph& others) {
  for (ValueId id : some.results()) {
    const ValueId node = id - some.idOfNode(0);
    if (std::ranges::count(others.results(), others.idOfNode(node)) == 0) return node;
  }
  return std::nullopt;
}

}  // namespace

std::string userOf(const Graph& graph, ValueId parameter) {
  for (size_t i = 0; i < graph.nodes().size(); ++i)
    if (std::ranges::count(graph.nodes()[i].operands, parameter) > 0) return lineOf(graph, i);
  return "nothing";
}

std::string firstDifference(const Graph& now, const Graph& before) {
  const auto &params = now.parameters(), &oldParams = before.parameters();
  for (size_t i = 0; i < std::min(params.size(), oldParams.size()); ++i) {
    const auto id = static_cast<ValueId>(i);
    if (!(params[i] == oldParams[i])) {
      return concat("input ", i, " is ", describe(params[i]), " and was ", describe(oldParams[i]),
                    "; first read by\n  ", userOf(now, id), "\nand then by\n  ",
                    userOf(before, id));
    }
  }
  const auto &nodes = now.nodes(), &oldNodes = before.nodes();
  for (size_t i = 0; i < std::min(nodes.size(), oldNodes.size()); ++i) {
    if (!isSame(now, i, before, i))
      return concat("operator ", i, " is\n  ", lineOf(now, i), "\nand was\n  ", lineOf(before, i));
  }
  if (nodes.size() != oldNodes.size()) {
    const bool isLonger = nodes.size() > oldNodes.size();
    return concat("it has ", nodes.size(), " operators and the nearest ", oldNodes.size(),
                  isLonger ? "; the first more is\n  " : "; the first that it lacks is\n  ",
                  isLonger ? lineOf(now, oldNodes.size()) : lineOf(before, nodes.size()));
  }
  // Values that somebody holds must be written.
  if (const auto node = onlyIn(now, before))
    return "a handle now holds the result of\n  " + lineOf(now, *node);
  if (const auto node = onlyIn(before, now))
    return "no handle holds any more the result of\n  " + lineOf(before, *node);
  return "";
}

size_t equalNodes(const Graph& x, const Graph& y) {
  const size_t nodes = x.nodes().size(), others = y.nodes().size();
  size_t fromFront = 0, fromBack = 0;
  for (size_t i = 0; i < std::min(nodes, others); ++i) {
    fromFront += isSame(x, i, y, i);
    fromBack += isSame(x, nodes - 1 - i, y, others - 1 - i);
  }
  return std::max(fromFront, fromBack);
}

}  // namespace fl::plans
