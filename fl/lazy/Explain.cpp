#include "fl/lazy/Explain.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <vector>

#include "fl/base/Error.h"
#include "fl/ir/Text.h"

namespace fl::lazy {
namespace {

using detail::concat;

constexpr size_t kMaxKnown = 256;

bool isSame(const ir::Node& x, const ir::Node& y) {
  return x.op == y.op && x.operands == y.operands && x.attrs == y.attrs && x.type == y.type;
}

// "%1 = exp %0 : f32[8]  // A.cpp:3" of node `index`.
std::string lineOf(const ir::Graph& graph, size_t index) {
  std::istringstream text(ir::printGraph(graph, "g", {.callSites = true}));
  std::string line;
  for (size_t i = 0; i < index + 2; ++i) std::getline(text, line);
  return line.substr(line.find_first_not_of(' '));
}

std::string describe(const ir::Parameter& parameter) {
  return (parameter.number ? "number " : "") + parameter.type.toString();
}

// The first of `some` that is not among `others`.
std::optional<ir::ValueId> onlyIn(const std::vector<ir::ValueId>& some,
                                  const std::vector<ir::ValueId>& others) {
  const auto found = std::ranges::find_if(
      some, [&](ir::ValueId id) { return std::ranges::count(others, id) == 0; });
  return found == some.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

std::string userOf(const ir::Graph& graph, ir::ValueId parameter) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (std::ranges::count(graph.nodes()[i].operands, parameter) > 0) return lineOf(graph, i);
  }
  return "nothing";
}

std::string firstDifference(const ir::Graph& now, const ir::Graph& before) {
  const auto &params = now.parameters(), &oldParams = before.parameters();
  for (size_t i = 0; i < std::min(params.size(), oldParams.size()); ++i) {
    if (!(params[i] == oldParams[i])) {
      return concat("input ", i, " is ", describe(params[i]), " and was ", describe(oldParams[i]),
                    "; first read by\n  ", userOf(now, static_cast<ir::ValueId>(i)));
    }
  }
  if (params.size() != oldParams.size()) {
    return concat("it has ", params.size(), " inputs and the nearest ", oldParams.size());
  }
  const auto &nodes = now.nodes(), &oldNodes = before.nodes();
  for (size_t i = 0; i < std::min(nodes.size(), oldNodes.size()); ++i) {
    if (!isSame(nodes[i], oldNodes[i])) {
      return concat("operator ", i, " is\n  ", lineOf(now, i), "\nand was\n  ", lineOf(before, i));
    }
  }
  if (nodes.size() != oldNodes.size()) {
    const bool isLonger = nodes.size() > oldNodes.size();
    return concat("it has ", nodes.size(), " operators and the nearest ", oldNodes.size(),
                  isLonger ? "; the first more is\n  " : "; the first that it lacks is\n  ",
                  isLonger ? lineOf(now, oldNodes.size()) : lineOf(before, nodes.size()));
  }
  // Values that somebody holds must be written.
  if (const auto id = onlyIn(now.results(), before.results())) {
    return "a handle now holds the result of\n  " + lineOf(now, *id - params.size());
  }
  if (const auto id = onlyIn(before.results(), now.results())) {
    return "no handle holds any more the result of\n  " + lineOf(before, *id - params.size());
  }
  return "";
}

const ir::Graph* PlanHistory::nearest(const ir::Graph& graph) const {
  const ir::Graph* best = nullptr;
  ptrdiff_t most = -1;
  for (const ir::Graph& known : known_) {
    ptrdiff_t same = 0;
    for (size_t i = 0; i < std::min(graph.nodes().size(), known.nodes().size()); ++i) {
      same += isSame(graph.nodes()[i], known.nodes()[i]);
    }
    if (same >= most) {
      most = same;
      best = &known;
    }
  }
  return best;
}

std::string PlanHistory::explain(const ir::Graph& graph) {
  const ir::Graph* before = nearest(graph);
  std::string reason = before ? firstDifference(graph, *before) : "it is the first";
  if (reason.empty()) reason = "its plan was dropped: too many others came after it";
  known_.push_back(graph);
  if (known_.size() > kMaxKnown) known_.pop_front();
  return concat("a plan of ", graph.nodes().size(), " operators is new: ", reason);
}

}  // namespace fl::lazy
