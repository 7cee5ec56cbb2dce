// Applies the fusion plan: a kernel for each group, steps for every node that runs alone, buffers
// for what crosses between them. It decides one thing: whether parts of concatenations, and what is
// padded, are made in their places, which may take less memory or more.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "fl/base/Error.h"
#include "fl/codegen/Passes.h"
#include "fl/planner/Memory.h"
#include "fl/planner/Order.h"
#include "fl/planner/Planner.h"

namespace fl::codegen {
namespace {

using ir::BufferRef;

// A group or a node that runs alone.
struct Unit {
  int group = -1;
  ValueId node = -1;
  ValueId last = -1;  // the largest value it defines, for a stable order
};

// `joinsInPlace`: what only a concatenation or a padding reads is made in that one's buffer.
class ScheduleBuilder {
 public:
  ScheduleBuilder(Compilation& compilation, bool joinsInPlace)
      : graph_(compilation.graph),
        plan_(compilation.fusion),
        lowering_(compilation.lowering),
        schedule_(compilation.schedule),
        joinsInPlace_(joinsInPlace && lowering_ == ir::Lowering::Kernels),
        buffers_(graph_.valueCount()),
        stored_(storedValues(graph_, plan_)) {}

  // Returns whether a temporary lives longer for what is made in its place.
  bool run() {
    schedule_.parameters = graph_.parameters();
    assignParameters();
    assignOutputs();
    const std::vector<Unit> units = orderedUnits();
    placeValues(units);
    for (const Unit& unit : units)
      unit.group >= 0 ? emitGroup(plan_.groups[unit.group]) : emitAlone(unit.node);
    planner::addScratch(&schedule_);
    planner::computeLifetimes(&schedule_);
    return growsTemporary_;
  }

 private:
  // ---- Buffers ----

  void assignParameters() {
    for (size_t i = 0; i < graph_.parameters().size(); ++i) {
      if (graph_.parameters()[i].number) continue;
      buffers_[i] = BufferRef{BufferRef::Space::Parameter, static_cast<int>(i)};
    }
  }

  bool isContiguous(ValueId id) const {
    return sameElements(graph_, plan_.values[id], graph_.type(id).shape);
  }

  void assignOutputs() {
    for (size_t i = 0; i < graph_.results().size(); ++i) {
      const ValueId id = graph_.results()[i];
      const ValueId base = plan_.values[id].base;
      std::optional<BufferRef>& place = buffers_[base];
      FL_INTERNAL_CHECK(isContiguous(id), "a result is in memory");
      schedule_.outputs.push_back(
          {graph_.type(id), place.has_value(), place.value_or(BufferRef())});
      if (!place) place = BufferRef{BufferRef::Space::Output, static_cast<int>(i)};
    }
  }

  BufferRef newTemporary(const ir::ValueType& type) {
    schedule_.temporaries.push_back({(bytesOf(type.type, type.shape) + 63) / 64 * 64, 0, 0, 0});
    return {BufferRef::Space::Temporary, static_cast<int>(schedule_.temporaries.size()) - 1};
  }

  BufferRef bufferFor(ValueId base) {
    if (!buffers_[base]) buffers_[base] = newTemporary(graph_.type(base));
    return *buffers_[base];
  }

  // How a base's elements lie in its buffer.
  ir::StridedLayout layoutOf(ValueId base) const {
    const auto part = parts_.find(base);
    return part != parts_.end() ? part->second : ir::contiguousLayout(graph_.type(base).shape);
  }

  // Where the elements of a base that runs alone are written.
  ir::BufferPlace placeOf(ValueId base) {
    const ir::StridedLayout layout = layoutOf(base);
    FL_INTERNAL_CHECK(isDense(layout, graph_.type(base).shape), "only kernels write with strides");
    return {bufferFor(base), layout.offset};
  }

  // An update whose old value no later unit reads is written over it: in the buffer that the old
  // value is given for that, or in the parameter's if the run may take it. What it writes there is
  // copied first if it is read from there. So is a scatter, but over parameters, which it reads.
  // From the last one on, so that all of a chain, and of concatenations of concatenations, get the
  // buffer of its end.
  void placeValues(const std::vector<Unit>& units) {
    const std::vector<std::vector<int>> readers = findReaders(units);
    for (size_t i = units.size(); i-- > 0;) {
      const ValueId id = units[i].node;
      if (id < 0) continue;
      const auto& [op, operands, attrs, type, site, origin] = graph_.node(id);
      const bool holds = op == ir::Op::Concatenate || fillsAround(graph_.node(id));
      if (holds && joinsInPlace_) placeParts(id, readers);
      const bool isBox = writesBox(op, lowering_);
      if (!isBox && op != ir::Op::Scatter && op != ir::Op::ScatterAdd) continue;
      const ValueId base = plan_.values[operands[0]].base;
      const auto own = std::ranges::count(readers[base], static_cast<int>(i));
      // Else a number, or many of it: a buffer for them would be filled long before it is wanted.
      const bool isValue = graph_.isParameter(base) ? !graph_.isNumber(base)
                                                    : opKind(graph_.node(base).op) != Kind::View;
      const bool free = isContiguous(operands[0]) && readers[base].back() == static_cast<int>(i) &&
                        (isBox || (own == 1 && !parts_.contains(id) && isValue));
      if (free && !buffers_[base])
        buffers_[base] = bufferFor(id);
      else if (free && isBox && graph_.isParameter(base) && isOutput(buffers_[id]))
        schedule_.outputs[buffers_[id]->index].over = base;
    }
  }

  // What a concatenation or a padding alone reads is made in its place there, if its elements
  // follow one another, or a kernel of its group writes them in long runs or has reduced to them.
  void placeParts(ValueId id, const std::vector<std::vector<int>>& readers) {
    const std::vector<ir::StridedLayout> layouts =
        partLayouts(graph_, graph_.node(id), layoutOf(id));
    for (size_t i = 0; i < layouts.size(); ++i) {
      const ValueId part = graph_.node(id).operands[i], base = plan_.values[part].base;
      if (!isContiguous(part) || readers[base].size() != 1 || buffers_[base] ||
          writesBox(graph_.node(base).op, lowering_)) {
        continue;
      }
      const Shape& shape = graph_.type(base).shape;
      const auto layout = reshapedLayout(layouts[i], graph_.type(part).shape, shape);
      if (!layout || !(isDense(*layout, shape) || isWrittenInRuns(base, *layout))) continue;
      buffers_[base] = bufferFor(id);
      parts_[base] = *layout;
      growsTemporary_ = growsTemporary_ || !isOutput(buffers_[id]);
    }
  }

  bool isWrittenInRuns(ValueId id, const ir::StridedLayout& layout) const {
    if (plan_.groupOf[id] < 0) return false;
    const FusionGroup& group = plan_.groups[plan_.groupOf[id]];
    const Shape& shape = graph_.type(id).shape;
    Dim run = 1;
    for (int i = 0; i < shape.ndim() && (shape[i] == 1 || layout.strides[i] == run); ++i)
      run *= shape[i];
    // What is left of a reduction is little.
    const bool isFew = group.levels[position(group, id)] == Level::Row;
    if (run < kShortestRun && !isFew) return false;
    return group.space.ndim() <= ir::kMaxRank &&
           mergesWhereReduced(group, storeAccess(group, position(group, id), layout));
  }

  static bool isOutput(const std::optional<BufferRef>& ref) {
    return ref && ref->space == BufferRef::Space::Output;
  }

  // Calls f(base) for what a unit reads in memory to have an operand.
  template <class F>
  void forEachBase(const Unit& unit, ValueId operand, F&& f) const {
    const ValueId base = plan_.values[operand].base;
    if (unit.group < 0) return f(base);
    if (plan_.groupOf[base] == unit.group) return;
    forEachRead(graph_, plan_, plan_.groups[unit.group].again, operand,
                [&](ValueId read) { f(plan_.values[read].base); });
  }

  std::vector<ValueId> nodesOf(const Unit& unit) const {
    return unit.group < 0 ? std::vector{unit.node} : plan_.groups[unit.group].nodes;
  }

  // By base, the units that read it in memory, one for each operand that is of it.
  std::vector<std::vector<int>> findReaders(const std::vector<Unit>& units) const {
    std::vector<std::vector<int>> readers(graph_.valueCount());
    for (int i = 0; i < std::ssize(units); ++i) {
      for (ValueId id : nodesOf(units[i])) {
        for (ValueId operand : graph_.node(id).operands)
          forEachBase(units[i], operand, [&](ValueId base) { readers[base].push_back(i); });
      }
    }
    return readers;
  }

  // ---- Order ----

  std::vector<Unit> collectUnits() const {
    std::vector<Unit> units;
    for (size_t g = 0; g < plan_.groups.size(); ++g)
      units.push_back({static_cast<int>(g), -1, std::ranges::max(plan_.groups[g].nodes)});
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const ValueId id = graph_.idOfNode(i);
      if (plan_.groupOf[id] < 0 && plan_.values[id].base == id && !plan_.inlined[id])
        units.push_back({-1, id, id});
    }
    return units;
  }

  // Topological order of units; among those that are ready, the one recorded first.
  std::vector<Unit> orderedUnits() const {
    const std::vector<Unit> units = collectUnits();
    const std::vector<std::vector<int>> readers = findReaders(units);
    std::vector<int> waiting(units.size(), 0);
    const auto forEachReader = [&](int unit, auto&& f) {
      for (ValueId id : nodesOf(units[unit]))
        for (int reader : readers[id])
          if (reader != unit) f(reader);
    };
    for (int u = 0; u < std::ssize(units); ++u)
      forEachReader(u, [&](int reader) { ++waiting[reader]; });
    std::set<std::pair<ValueId, int>> ready;  // by the last of its values
    for (size_t u = 0; u < units.size(); ++u)
      if (waiting[u] == 0) ready.emplace(units[u].last, u);
    std::vector<Unit> ordered;
    while (!ready.empty()) {
      const int unit = ready.extract(ready.begin()).value().second;
      ordered.push_back(units[unit]);
      forEachReader(unit, [&](int reader) {
        if (--waiting[reader] == 0) ready.emplace(units[reader].last, reader);
      });
    }
    FL_INTERNAL_CHECK(ordered.size() == units.size(), "the fusion plan has a cycle");
    return ordered;
  }

  // ---- Nodes that run alone ----

  void copyValue(ValueId id, const ir::BufferPlace& to) {
    const ResolvedValue& value = plan_.values[id];
    const Shape& shape = graph_.type(id).shape;
    if (shape.elements() == 0) return;
    ir::KernelBuilder builder(shape, std::vector<bool>(shape.ndim(), false));
    const dtype type = graph_.type(id).type;
    const int loaded =
        graph_.isNumber(value.base)
            ? builder.number(value.base, type)
            : builder.load(builder.addInput(bufferFor(value.base), type,
                                            {value.layout.offset, value.layout.strides}));
    builder.beginStage(false);
    builder.store(builder.addOutput(to.buffer, type, {to.offset, contiguousStrides(shape)}),
                  loaded);
    auto built = builder.finish();
    built ? appendLaunch(std::move(*built), {}) : viewContiguous(id, to);
  }

  // A view with more axes than a kernel holds: its last op alone, on a contiguous operand, where
  // more of them merge.
  void viewContiguous(ValueId id, const ir::BufferPlace& to) {
    const Node& node = graph_.node(id);
    std::vector<ir::OperandSource> operands;
    for (ValueId operand : node.operands) operands.push_back(source(operand, true));
    lowerNode(graph_, node, operands, to, lowering_, &schedule_);
  }

  ir::OperandSource copied(ValueId id) {
    const BufferRef copy = newTemporary(graph_.type(id));
    copyValue(id, {copy});
    return {copy, ir::contiguousLayout(graph_.type(id).shape)};
  }

  ir::OperandSource source(ValueId id, bool dense) {
    const ResolvedValue& value = plan_.values[id];
    if (graph_.isNumber(id)) {
      return {{BufferRef::Space::Parameter, id}, {}};
    } else if (graph_.isNumber(value.base) ||
               (dense && !isDense(value.layout, graph_.type(id).shape))) {
      return copied(id);
    } else if (!stored_[value.base] && !buffers_[value.base]) {
      emitAlone(value.base);
    }
    return {bufferFor(value.base), value.layout};
  }

  void emitAlone(ValueId id) {
    const size_t before = schedule_.steps.size();
    lowerAlone(id);
    for (size_t i = before; i < schedule_.steps.size(); ++i) {
      auto* launch = std::get_if<ir::LaunchStep>(&schedule_.steps[i]);
      if (launch) std::ranges::replace(launch->nodes, -1, id);
      if (launch && !launch->site.address()) launch->site = graph_.node(id).site;  // a copy for it
      if (!launch) std::get<ir::LibraryStep>(schedule_.steps[i]).node = id;
    }
  }

  // The origin of the node, or, if one whose step comes before looks up the same index in as many
  // elements, of that one: it finds what is wrong with the index first.
  int firstLookup(const Node& node) {
    using enum ir::Op;
    if (node.op != Gather && node.op != Scatter && node.op != ScatterAdd) return node.origin;
    if (node.op == Gather && node.attrs[1]) return ir::kInside;
    const Dim bound = graph_.type(node.operands[0]).shape[node.attrs[0]];
    return lookups_.try_emplace({node.operands[1], bound}, node.origin).first->second;
  }

  void lowerAlone(ValueId id) {
    Node node = graph_.node(id);
    node.origin = firstLookup(node);
    if (node.op == ir::Op::Reshape && lowering_ == ir::Lowering::Kernels) {
      // Its strides could not express it, so its operand's elements are written out in order.
      return copyValue(node.operands[0], placeOf(id));
    }
    const bool inPlace = writesBox(node.op, lowering_) && isInPlace(id);
    if (writesBox(node.op, lowering_) && !inPlace) copyValue(node.operands[0], placeOf(id));
    if (!tryLower(node, needsDenseOperands(node.op, lowering_), inPlace, placeOf(id)))
      FL_INTERNAL_CHECK(tryLower(node, true, inPlace, placeOf(id)), ir::opName(node.op));
  }

  // Whether the buffer of an update has the old value's elements already.
  bool isInPlace(ValueId id) {
    const ValueId base = plan_.values[graph_.node(id).operands[0]].base;
    const BufferRef own = bufferFor(id);
    return buffers_[base] == own || (isOutput(own) && schedule_.outputs[own.index].over == base);
  }

  bool tryLower(const Node& node, bool dense, bool inPlace, const ir::BufferPlace& result) {
    std::vector<ir::OperandSource> operands;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId operand = node.operands[i], base = plan_.values[operand].base;
      const bool update = writesBox(node.op, lowering_);
      if (update && i == 0) {
        operands.push_back({result.buffer, ir::contiguousLayout(node.type.shape)});
        continue;
      }
      // A kernel that writes a number to a box may not hold all axes; routines take buffers.
      const bool written = !dense && update && i == 1 && !graph_.isNumber(operand);
      const bool over = inPlace && base == plan_.values[node.operands[0]].base;
      operands.push_back(over                               ? copied(operand)
                         : written && graph_.isNumber(base) ? ir::OperandSource{{}, {}, base}
                                                            : source(operand, dense));
    }
    return lowerNode(graph_, node, operands, result, lowering_, &schedule_);
  }

  // ---- Groups ----

  // Emits one group; values are evaluated at most once, in stages.
  struct GroupState {
    const FusionGroup& group;
    ir::KernelBuilder builder;
    std::vector<int> storedIn;  // one a node of the group: storedIn()
    std::vector<int> values;    // one a node of the group; -1 until known
    // What is computed again, at the elements of each access.
    struct Again {
      ValueId id;
      ir::Access access;
      int value;
    };
    std::vector<Again> again = {};
  };
  static constexpr int kNone = -1, kRowStage = -2;

  // Of each node the sweep that stores it, kRowStage for those of rows, or kNone: the last
  // one that computes it anyway, so that it may take the place of what that sweep reads last.
  std::vector<int> storedIn(const FusionGroup& group) const {
    std::vector<int> last = group.sweeps;
    for (size_t i = group.nodes.size(); i-- > 0;) {
      const Node& node = graph_.node(group.nodes[i]);
      const int sweep = ir::opKind(node.op) == Kind::Reduce ? group.sweeps[i] - 1 : last[i];
      for (ValueId operand : node.operands) {
        const size_t used = position(group, plan_.values[operand].base);
        if (used < last.size()) last[used] = std::max(last[used], sweep);
      }
    }
    for (size_t i = 0; i < last.size(); ++i) {
      if (group.levels[i] == Level::Row) last[i] = kRowStage;
      if (!stored_[group.nodes[i]]) last[i] = kNone;
    }
    return last;
  }

  void emitGroup(const FusionGroup& group) {
    GroupState state{group, ir::KernelBuilder(group.space, group.reduced), storedIn(group),
                     std::vector<int>(group.nodes.size(), -1)};
    if (std::ranges::count(state.storedIn, kNone) == std::ssize(group.nodes)) return;
    const int sweeps = *std::max_element(group.sweeps.begin(), group.sweeps.end());
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      state.builder.beginStage(true);
      storeIn(state, sweep);
      reduceSweep(state, sweep);
    }
    if (sweeps > 0 && std::ranges::count(state.storedIn, sweeps) > 0) {
      state.builder.beginStage(true);
      storeIn(state, sweeps);
    }
    if (sweeps == 0 || std::ranges::count(state.storedIn, kRowStage) > 0) {
      state.builder.beginStage(false);
      storeIn(state, sweeps == 0 ? 0 : kRowStage);
    }
    std::optional<ir::BuiltKernel> built = state.builder.finish();
    if (built) return appendLaunch(std::move(*built), graph_.node(group.nodes.back()).site);
    for (ValueId node : std::set(group.nodes.begin(), group.nodes.end())) emitAlone(node);
  }

  // The access of what node `i` of a group stores.
  ir::Access storeAccess(const FusionGroup& group, size_t i,
                         const ir::StridedLayout& layout) const {
    const Node& node = graph_.node(group.nodes[i]);
    return groupAccess(group, node, group.levels[i], layout, node.type.shape);
  }

  void storeIn(GroupState& state, int stage) {
    for (size_t i = 0; i < state.group.nodes.size(); ++i) {
      if (state.storedIn[i] != stage) continue;
      const ValueId id = state.group.nodes[i];
      const int value = evaluate(state, i);
      const ir::Access access = storeAccess(state.group, i, layoutOf(id));
      state.builder.store(state.builder.addOutput(bufferFor(id), graph_.type(id).type, access),
                          value);
    }
  }

  void reduceSweep(GroupState& state, int sweep) {
    for (size_t i = 0; i < state.group.nodes.size(); ++i) {
      const Node& node = graph_.node(state.group.nodes[i]);
      if (ir::opKind(node.op) != Kind::Reduce || state.group.sweeps[i] != sweep + 1) continue;
      const dtype computed = computeType(node.type.type);
      const int read = operandValue(state, node, Level::Full, 0);
      state.builder.beginNode(state.group.nodes[i]);
      const int operand = state.builder.apply(ir::Op::Cast, computed, {read});
      const int total = state.builder.total(state.builder.reduce(node.op, operand), computed);
      state.values[i] = state.builder.apply(ir::Op::Cast, node.type.type, {total});
    }
  }

  // The depth of this recursion is bounded by the nodes of a group.
  int evaluate(GroupState& state, size_t i) {
    if (state.values[i] >= 0) return state.values[i];
    const Node& node = graph_.node(state.group.nodes[i]);
    const Level level = state.group.levels[i];
    std::vector<int> args;
    for (size_t k = isLookedUp(node, 0) ? 1 : 0; k < node.operands.size(); ++k)
      args.push_back(operandValue(state, node, level, k));
    state.builder.beginNode(state.group.nodes[i]);
    switch (ir::opKind(node.op)) {
      case Kind::Source:
        state.values[i] = indexValue(state, node, [&](const ir::StridedLayout& layout) {
          return groupAccess(state.group, node, level, layout, node.type.shape);
        });
        break;
      case Kind::Random:
        state.values[i] = state.builder.random(
            node.type.type, args, state.builder.index(levelAccess(state.group, level)));
        break;
      case Kind::Index:
        state.values[i] = gatherValue(state, node, level, args[0]);
        break;
      default:
        state.values[i] = state.builder.apply(node.op, node.type.type, args);
    }
    return state.values[i];
  }

  int operandValue(GroupState& state, const Node& node, Level level, size_t i) {
    const size_t inside = position(state.group, plan_.values[node.operands[i]].base);
    if (inside < state.values.size()) return evaluate(state, inside);
    return valueOf(state, node.operands[i], [&](const ir::StridedLayout& layout) {
      return operandAccess(graph_, layout, state.group, node, i, level);
    });
  }

  // The access under the group's space of a layout of a value's shape.
  using AccessOf = std::function<ir::Access(const ir::StridedLayout&)>;

  // A value of another group or of none.
  int valueOf(GroupState& state, ValueId id, const AccessOf& accessOf) {
    const auto& [base, layout] = plan_.values[id];
    const dtype type = graph_.type(base).type;
    if (graph_.isNumber(base)) return state.builder.number(base, type);
    if (plan_.inlined[base]) return indexValue(state, graph_.node(base), accessOf);
    if (std::ranges::binary_search(state.group.again, base)) {
      return recompute(state, base, [&](const ir::StridedLayout& whole) {
        return accessOf(*reshapedLayout(whole, graph_.type(base).shape, graph_.type(id).shape));
      });
    }
    return state.builder.load(state.builder.addInput(bufferFor(base), type, accessOf(layout)));
  }

  // The depth of this recursion is bounded by the values that the group computes again.
  int recompute(GroupState& state, ValueId again, const AccessOf& accessOf) {
    const Node& node = graph_.node(again);
    const ir::Access access = accessOf(ir::contiguousLayout(node.type.shape));
    for (const auto& [id, at, value] : state.again)
      if (id == again && at == access) return value;
    std::vector<int> args;
    for (ValueId operand : node.operands) {
      args.push_back(valueOf(state, operand, [&](const ir::StridedLayout& layout) {
        const ir::Access wide =
            broadcastAccess(layout, graph_.type(operand).shape, node.type.shape);
        return accessOf({wide.offset, wide.strides});
      }));
    }
    state.builder.beginNode(again);
    const int value = state.builder.apply(node.op, node.type.type, args);
    state.again.push_back({again, access, value});
    return value;
  }

  int gatherValue(GroupState& state, const Node& node, Level level, int index) {
    const ResolvedValue& table = plan_.values[node.operands[0]];
    const Dim axis = node.attrs[0], bound = graph_.type(node.operands[0]).shape[axis];
    firstLookup(node);
    return state.builder.gather(bufferFor(table.base), node.type.type,
                                operandAccess(graph_, plan_, state.group, node, 0, level), index,
                                table.layout.strides[axis], bound,
                                node.attrs[1] ? ir::kInside : node.origin);
  }

  int indexValue(GroupState& state, const Node& iota, const AccessOf& accessOf) {
    const int value = state.builder.index(accessOf(indexLayout(iota)));
    return state.builder.apply(ir::Op::Cast, iota.type.type, {value});
  }

  void appendLaunch(ir::BuiltKernel built, CallSite site) {
    built.launch.kernel = addKernel(&schedule_, built.kernel);
    built.launch.site = site;
    schedule_.steps.emplace_back(std::move(built.launch));
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  const ir::Lowering lowering_;
  ir::Schedule& schedule_;
  const bool joinsInPlace_;
  bool growsTemporary_ = false;
  std::vector<std::optional<BufferRef>> buffers_;  // of bases
  // Of bases that are made in a part of another value's buffer, which alone looks for them there.
  std::map<ValueId, ir::StridedLayout> parts_;
  const std::vector<bool> stored_;
  std::map<std::pair<ValueId, Dim>, int> lookups_;  // origins, by index and bound
};

}  // namespace

void buildSchedule(Compilation& compilation) {
  const ir::Schedule none = compilation.schedule;
  if (!ScheduleBuilder(compilation, true).run()) return;
  // What is in place early keeps all of a concatenation's memory: copies may take less.
  ir::Schedule inPlace = std::exchange(compilation.schedule, none);
  ScheduleBuilder(compilation, false).run();
  const auto least = [](const ir::Schedule& schedule) {
    return std::ranges::min(planner::ordersOf(schedule), {}, &planner::Order::peak).peak;
  };
  if (least(inPlace) <= least(compilation.schedule)) compilation.schedule = std::move(inPlace);
}

}  // namespace fl::codegen
