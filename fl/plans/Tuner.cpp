#include "fl/plans/Tuner.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "fl/base/Log.h"
#include "fl/codegen/Extensions.h"
#include "fl/ir/Text.h"

namespace fl::plans {
namespace {

using ir::Graph;
using ir::ValueId;

// Kernels that replace split ones have fewer operators, so that rounds end.
constexpr int kMostRounds = 64;

// What fusion may not make, while this thread compiles for a tuner.
thread_local const std::map<std::string, bool>* splitHere = nullptr;

// Operators as a graph of their own: what else they read is a parameter, views and constants are
// theirs.
class Region {
 public:
  Region(const Graph& from, std::vector<ValueId> nodes) : from_(from), nodes_(std::move(nodes)) {
    std::erase_if(nodes_, [&](ValueId id) { return isEverywhere(id); });
    for (const ValueId id : nodes_) addParameters(id);
    for (const ValueId id : nodes_) add(id);
  }

  size_t operators() const { return nodes_.size(); }
  std::string text() const { return ir::printGraph(graph_, "kernel"); }

  Graph withResults(const std::vector<ValueId>& results) {
    std::vector<ValueId> own;
    for (const ValueId id : results) own.push_back(ids_.at(id));
    graph_.setResults(std::move(own));
    return graph_;
  }

 private:
  bool isEverywhere(ValueId id) const {
    if (from_.isParameter(id)) return false;
    const ir::Node& node = from_.node(id);
    return ir::opKind(node.op) == ir::Kind::View || node.operands.empty();
  }

  void addParameters(ValueId id) {
    for (const ValueId operand : from_.node(id).operands) {
      if (isEverywhere(operand)) {
        addParameters(operand);
      } else if (!std::ranges::binary_search(nodes_, operand) && !ids_.contains(operand)) {
        ids_[operand] = graph_.addParameter({from_.type(operand), from_.isNumber(operand)});
      }
    }
  }

  ValueId add(ValueId id) {
    if (const auto found = ids_.find(id); found != ids_.end()) return found->second;
    ir::Node copy = from_.node(id);
    for (ValueId& operand : copy.operands) operand = add(operand);
    return ids_[id] = graph_.addNode(std::move(copy));
  }

  const Graph& from_;
  std::vector<ValueId> nodes_;  // ascending, without views and constants
  std::map<ValueId, ValueId> ids_;
  Graph graph_;
};

bool allows(const Graph& graph, const std::vector<ValueId>& nodes) {
  if (!splitHere || splitHere->empty()) return true;
  const auto found = splitHere->find(Region(graph, nodes).text());
  return found == splitHere->end() || !found->second;
}

std::string lastOfFusion() {
  std::string last;
  for (const codegen::PassInfo& pass : codegen::passes()) {
    if (pass.stage == "fusion") last = pass.name;
  }
  return last;
}

}  // namespace

Tuner::Tuner(Ratio ratio, std::unique_ptr<runtime::Store> store, std::string key)
    : ratio_(std::move(ratio)), store_(std::move(store)), key_(std::move(key)) {
  static const bool isRuled = [] {
    codegen::fusionRules().add({.name = "FL_TUNE", .allows = allows});
    return true;
  }();
  static_cast<void>(isRuled);
}

bool Tuner::isSplit(const codegen::Compilation& made, const std::vector<bool>& stored,
                    const codegen::FusionGroup& group) {
  std::vector<ValueId> nodes = group.nodes;
  nodes.insert(nodes.end(), group.again.begin(), group.again.end());
  std::ranges::sort(nodes);
  Region region(made.graph, nodes);
  std::vector<ValueId> results;
  for (const ValueId id : group.nodes) {
    if (stored[id]) results.push_back(id);
  }
  // One whose values others compute again is no kernel.
  if (region.operators() < 2 || results.empty()) return false;
  const std::string text = region.text(), key = key_ + text;
  if (const auto known = split_.find(text); known != split_.end()) return known->second;
  if (const auto kept = store_ ? store_->find(key) : std::nullopt) {
    return split_[text] = *kept == "split";
  }
  const double ratio = ratio_(region.withResults(results));
  const bool split = ratio > kMostRatio;
  const ir::Node& last = made.graph.node(group.nodes.back());
  logLine(1, absl::StrFormat(
                 "tune: a kernel of %d operators takes %.2f of their time one by one%s, "
                 "at %s",
                 region.operators(), ratio, split ? ", and is split" : "", last.site.toString()));
  if (store_ && ratio > 0) store_->insert(key, split ? "split" : "kept");
  return split_[text] = split;
}

codegen::Compilation Tuner::compile(const Graph& graph, const codegen::CompileOptions& options) {
  const auto* outer = std::exchange(splitHere, &split_);
  const absl::Cleanup restore = [&] { splitHere = outer; };
  codegen::CompileOptions fusing = options;
  fusing.stopAfter = lastOfFusion();
  fusing.observe = nullptr;
  for (int round = 0; round < kMostRounds; ++round) {
    const codegen::Compilation made = codegen::compile(graph, fusing);
    const std::vector<bool> stored = codegen::storedValues(made.graph, made.fusion);
    int split = 0;
    for (const codegen::FusionGroup& group : made.fusion.groups)
      split += isSplit(made, stored, group);
    if (split == 0) break;
  }
  return codegen::compile(graph, options);
}

}  // namespace fl::plans
