#include "fl/codegen/FusionCost.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_format.h"
#include "fl/codegen/Extensions.h"

namespace fl::codegen {
namespace {

// Milliseconds of compiling: any kernel, one that sweeps across memory, a reduction, a load, a
// node; an approximation by the error that it is allowed, which tells the long ones from the short;
// normal numbers and remainders.
constexpr double kAny = 2, kAcross = 4, kReduction = 0.4, kLoad = 0.06, kNode = 0.01, kUlp = 0.6,
                 kLong = 2;

double millisecondsOf(const Node& node) {
  const double ulp = ir::opInfo(node.op).ulp;
  const bool isNormal = ir::opKind(node.op) == Kind::Random && node.operands.size() > 2;
  return isNormal || node.op == Op::Mod ? kLong : ulp >= 1 ? kUlp * ulp : kNode;
}

// A kernel as its cost sees it.
struct Reader {
  const Graph& graph;
  const FusionPlan& plan;
  const std::vector<ValueId>& nodes;  // in ascending order
  const std::vector<ValueId>& again;

  ValueId base(ValueId id) const { return plan.values[id].base; }
  bool contains(ValueId id) const { return std::ranges::binary_search(nodes, id); }

  // Calls f(operand) for what `id` reads in registers or memory: numbers and indices are neither.
  template <class F>
  void forEachRead(ValueId id, F&& f) const {
    for (ValueId operand : graph.node(id).operands)
      contains(base(operand)) ? f(operand) : codegen::forEachRead(graph, plan, again, operand, f);
  }
};

bool reducesAcross(const Graph& graph, const Node& node) {
  const std::vector<Dim> axes = node.attrs.list(1);
  const std::vector<Dim>& dims = graph.type(node.operands[0]).shape.get();
  const auto first = std::ranges::find_if(dims, [](Dim dim) { return dim != 1; });
  return !axes.empty() && first != dims.end() &&
         std::ranges::count(axes, first - dims.begin()) == 0;
}

// The nodes of the whole space that sweep `sweep` evaluates.
std::set<ValueId> evaluatedIn(const Reader& reader, const std::vector<bool>& stored,
                              const FusionGroup& group, int sweep) {
  std::map<ValueId, size_t> place;
  std::vector<ValueId> pending;
  for (size_t i = 0; i < group.nodes.size(); ++i) {
    const ValueId id = group.nodes[i];
    const Node& node = reader.graph.node(id);
    place[id] = i;
    if (stored[id] && group.levels[i] == Level::Full && group.sweeps[i] == sweep) {
      pending.push_back(id);
    } else if (ir::opKind(node.op) == Kind::Reduce && group.sweeps[i] == sweep + 1) {
      pending.push_back(reader.plan.values[node.operands[0]].base);
    }
  }
  std::set<ValueId> evaluated;
  while (!pending.empty()) {
    const ValueId id = pending.back();
    pending.pop_back();
    const auto found = place.find(id);
    if (found != place.end() && group.levels[found->second] == Level::Full &&
        evaluated.insert(id).second) {
      reader.forEachRead(id, [&](ValueId read) { pending.push_back(reader.base(read)); });
    }
  }
  return evaluated;
}

// Operations on values that other groups compute too, and on nodes that several sweeps evaluate.
int64_t recomputedBy(const Reader& reader, const std::vector<bool>& stored,
                     const FusionGroup& group) {
  size_t evaluations = group.again.size();
  std::set<ValueId> distinct;
  for (int sweep = 0; sweep <= std::ranges::max(group.sweeps); ++sweep) {
    const std::set<ValueId> evaluated = evaluatedIn(reader, stored, group, sweep);
    evaluations += evaluated.size();
    distinct.insert(evaluated.begin(), evaluated.end());
  }
  return static_cast<int64_t>(evaluations - distinct.size()) * group.space.elements();
}

int registersOf(const Reader& reader) {
  std::map<ValueId, ValueId> first, last;  // the nodes that make or load a value, and read it
  for (ValueId id : reader.nodes) {
    first[id] = last[id] = id;
    reader.forEachRead(id, [&](ValueId operand) {
      const ValueId base = reader.base(operand), value = reader.contains(base) ? base : operand;
      first.try_emplace(value, id);
      last[value] = id;
    });
  }
  std::map<ValueId, int> change;
  for (const auto& [value, node] : first) {
    ++change[node];
    --change[last[value] + 1];
  }
  int alive = 0, most = 0;
  for (const auto& [node, by] : change) {
    alive += by;
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace

std::string FusionCost::toString() const {
  return absl::StrFormat("bytes=%d recomputed=%d registers=%d compile=%.1fms", bytes, recomputed,
                         registers, milliseconds);
}

std::vector<ValueId> loadsOf(const Graph& graph, const FusionPlan& plan,
                             const std::vector<ValueId>& nodes, const std::vector<ValueId>& again) {
  const Reader reader{graph, plan, nodes, again};
  std::vector<ValueId> loads;
  for (ValueId id : nodes) {
    reader.forEachRead(id, [&](ValueId operand) {
      if (!reader.contains(reader.base(operand))) loads.push_back(operand);
    });
  }
  return united(std::move(loads));
}

double compileMilliseconds(const Graph& graph, const std::vector<ValueId>& nodes, size_t loads) {
  double milliseconds = kAny + kLoad * static_cast<double>(loads);
  bool across = false;
  for (ValueId id : nodes) {
    const Node& node = graph.node(id);
    const bool reduces = ir::opKind(node.op) == Kind::Reduce;
    across = across || (reduces && reducesAcross(graph, node));
    milliseconds += reduces ? kReduction : millisecondsOf(node);
  }
  milliseconds += across ? kAcross : 0;
  for (const CostModel& model : *costModels().all())
    milliseconds = std::max(milliseconds, model.milliseconds(graph, nodes, loads));
  return milliseconds;
}

FusionCost costOf(const Graph& graph, const FusionPlan& plan, const std::vector<bool>& stored,
                  const FusionGroup& group) {
  const std::vector<ValueId> nodes = united(group.nodes);
  const Reader reader{graph, plan, nodes, group.again};
  const std::vector<ValueId> loads = loadsOf(graph, plan, nodes, group.again);
  const auto elements = [&](ValueId id) { return graph.type(id).shape.elements(); };
  std::map<ValueId, Dim> moved;  // elements of each value
  for (ValueId load : loads) {
    Dim& read = moved[plan.values[load].base];
    read = std::min(read + elements(load), elements(plan.values[load].base));
  }
  for (ValueId id : nodes) moved[id] = stored[id] ? elements(id) : 0;
  FusionCost cost{.recomputed = recomputedBy(reader, stored, group),
                  .registers = registersOf(reader),
                  .milliseconds = compileMilliseconds(graph, nodes, loads.size())};
  for (const auto& [id, count] : moved)
    cost.bytes += count * static_cast<Dim>(getTypeSize(graph.type(id).type));
  return cost;
}

}  // namespace fl::codegen
