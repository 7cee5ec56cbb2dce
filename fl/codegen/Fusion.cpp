// Decides which nodes share a kernel, in one pass over the graph in order. A node joins the group
// of an operand when it iterates the same space (or the space left by the group's reduction) and
// reads the group's values element by element; otherwise it starts a group of its own.
//
// Groups stay free of cycles by depth: a group's depth is larger than that of every group it reads,
// so a node may join a group only if all its other operands come from groups of smaller depth.
#include "fl/codegen/Fusion.h"

#include <functional>

#include "fl/codegen/Extensions.h"
#include "fl/codegen/FusionCost.h"
#include "fl/codegen/FusionUses.h"
#include "fl/codegen/Passes.h"

namespace fl::codegen {
namespace {

// A limit of one kernel, beside those of FusionCost.h: what takes longer to compile keeps the first
// run waiting. Vectors that do not fit in registers are none: 60 alive at once take a quarter
// longer for each operation, and a second kernel would have to write and read them.
constexpr double kMostMilliseconds = 10;

// What one thread does as fast as several.
constexpr Dim kFewElements = Dim{1} << 16;
constexpr Dim kFewRows = 16;

// Lines that read the same one: copying it costs less than a read of theirs.
constexpr Dim kManyLines = 4;

// Starts of slices that one offset adds up: a chain of views costs their number squared.
constexpr size_t kMostTerms = 64;

// Elements along axis 0 that lie close together.
constexpr Dim kShortRun = 512;

// An index is cheaper to compute where it is read than to load.
bool isInlined(const Graph& graph, const Uses& uses, ValueId id) {
  return !graph.isParameter(id) && graph.node(id).op == ir::Op::Iota && !uses.isResult(id) &&
         !uses.anyUser(id, [&](ValueId user) { return !ir::isElementwise(graph.node(user).op); });
}

bool isFusable(const Graph& graph, ValueId id) {
  if (graph.isParameter(id) || graph.type(id).shape.elements() == 0) return false;
  const ir::Op op = graph.node(id).op;
  const Kind kind = ir::opKind(op);
  return ir::isElementwise(op) || kind == Kind::Reduce || kind == Kind::Source ||
         kind == Kind::Random || kind == Kind::Index;
}

class Fuser {
 public:
  explicit Fuser(Compilation& compilation)
      : graph_(compilation.graph),
        plan_(compilation.fusion),
        uses_(graph_, plan_),
        viewsAreCalls_(compilation.lowering == ir::Lowering::Calls),
        depth_(graph_.valueCount(), 0) {}

  void run() {
    plan_.groupOf.assign(graph_.valueCount(), -1);
    plan_.values.resize(graph_.valueCount());
    plan_.inlined.assign(graph_.valueCount(), false);
    for (ValueId id = 0; id < graph_.valueCount(); ++id) {
      resolve(id);
      if (plan_.enabled && isInlined(graph_, uses_, id)) {
        plan_.inlined[id] = true;
      } else if (plan_.enabled && isFusable(graph_, id)) {
        place(id);
      }
      if (!graph_.isParameter(id) && plan_.groupOf[id] < 0)
        depth_[id] = depthAfter(graph_.node(id));
    }
    absorbRows();
    dropEmptyGroups(&plan_);
  }

 private:
  // What joining would look like; `level` and `sweep` describe the node in the group.
  struct Fit {
    Level level = Level::Full;
    int sweep = 0;
    std::vector<bool> reduced;  // the group's reduced axes afterwards
  };

  // ---- Views ----

  void resolve(ValueId id) {
    ResolvedValue& value = plan_.values[id];
    value = {id, ir::contiguousLayout(graph_.type(id).shape)};
    if (graph_.isParameter(id) || ir::opKind(graph_.node(id).op) != Kind::View || viewsAreCalls_)
      return;
    const Node& node = graph_.node(id);
    const ValueId operand = node.operands[0];
    const auto layout = viewLayout(graph_, node, plan_.values[operand].layout);
    if (!layout) return;
    const ResolvedValue view{plan_.values[operand].base, *layout};
    // One copy serves every reader that needs the elements in order.
    const bool copied = neededInMemory(id, view) || (graph_.isNumber(view.base) && isTable(id)) ||
                        isRereadAcrossLines(id, view.layout) ||
                        view.layout.offset.terms.size() > kMostTerms;
    if (sameElements(graph_, view, graph_.type(id).shape) || !copied) value = view;
  }

  // True if a map reads a line of far elements once for each of many other lines, or a lookup as
  // many elements as there are: as it is, each of them takes a cache line every time.
  bool isRereadAcrossLines(ValueId id, const ir::StridedLayout& layout) const {
    const Shape& shape = graph_.type(id).shape;
    return shape.ndim() > 0 && shape[0] > 1 && std::abs(layout.strides[0]) > 1 &&
           uses_.anyUser(id, [&](ValueId user) {
             const Dim lines = looksUp(user, id) ? 1 : kManyLines;
             return isFusable(graph_, user) &&
                    graph_.type(user).shape.elements() >= lines * shape.elements();
           });
  }

  bool looksUp(ValueId user, ValueId id) const {
    const Node& node = graph_.node(user);
    return isLookedUp(node, 0) && node.operands[0] == id;
  }

  bool isTable(ValueId id) const {
    return uses_.anyUser(id, [&](ValueId user) { return looksUp(user, id); });
  }

  // Calls read a piece of memory in order wherever it begins.
  bool neededInMemory(ValueId id, const ResolvedValue& view) const {
    const bool isPiece = !graph_.isNumber(view.base) && isDense(view.layout, graph_.type(id).shape);
    return uses_.isResult(id) || (!isPiece && uses_.anyUser(id, [&](ValueId user) {
             return needsDenseOperands(graph_.node(user).op, ir::Lowering::Kernels) &&
                    ir::opKind(graph_.node(user).op) != Kind::Reduce;
           }));
  }

  // ---- Depth ----

  int depthOf(ValueId id) const {
    const ValueId base = plan_.values[id].base;
    const int group = plan_.groupOf[base];
    return group >= 0 ? groupDepth_[group] : depth_[base];
  }

  int depthAfter(const Node& node) const {
    int depth = 0;
    for (ValueId operand : node.operands) depth = std::max(depth, depthOf(operand) + 1);
    return depth;
  }

  // ---- Groups ----

  void place(ValueId id) {
    std::vector<int> candidates;
    for (ValueId operand : graph_.node(id).operands)
      candidates.push_back(plan_.groupOf[plan_.values[operand].base]);
    std::erase(candidates, -1);
    std::ranges::stable_sort(candidates, std::greater(), [&](int g) { return groupDepth_[g]; });
    if (std::ranges::none_of(candidates, [&](int g) { return tryJoin(id, g); })) start(id);
    absorbOperands(id);
  }

  void start(ValueId id) {
    const Node& node = graph_.node(id);
    FusionGroup group;
    const bool reduces = ir::opKind(node.op) == Kind::Reduce;
    group.space = squeezed(reduces ? graph_.type(node.operands[0]).shape : node.type.shape);
    group.reduced = reduces ? reducedAxes(node) : std::vector<bool>(group.space.ndim(), false);
    if (reduces &&
        !mergesWhereReduced(group, operandAccess(graph_, plan_, group, node, 0, Level::Full))) {
      return;  // stays alone; its operand is made contiguous first
    }
    group.nodes = {id};
    group.levels = {reduces ? Level::Row : Level::Full};
    group.sweeps = {reduces ? 1 : 0};
    plan_.groupOf[id] = static_cast<int>(plan_.groups.size());
    groupDepth_.push_back(depthAfter(node));
    plan_.groups.push_back(std::move(group));
  }

  bool tryJoin(ValueId id, int index) {
    FusionGroup& group = plan_.groups[index];
    Fit fit;
    std::vector<int> neighbours;
    if (!fits(id, group, &fit) || !othersFit(id, index, fit.level, &neighbours) ||
        !fitsLimits(group, withNodesOf(neighbours, id))) {
      return false;
    }
    for (int neighbour : neighbours) {
      if (FusionGroup& from = plan_.groups[neighbour]; !isReducing(from))
        from.levels.assign(from.nodes.size(), fit.level);
      moveInto(neighbour, index);
    }
    group.reduced = fit.reduced;
    group.nodes.push_back(id);
    group.levels.push_back(fit.level);
    group.sweeps.push_back(fit.sweep);
    plan_.groupOf[id] = index;
    return true;
  }

  // All operands from other groups must be computed before this group or move into it: neither of
  // two groups of one depth depends on the other.
  bool othersFit(ValueId id, int index, Level level, std::vector<int>* neighbours) const {
    const Node& node = graph_.node(id);
    const FusionGroup& group = plan_.groups[index];
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const int source = plan_.groupOf[plan_.values[node.operands[i]].base];
      if (source == index || depthOf(node.operands[i]) < groupDepth_[index]) continue;
      const bool moves =
          source >= 0 && groupDepth_[source] == groupDepth_[index] && isReducing(group) &&
          !isLookedUp(node, i) &&
          operandAccess(graph_, plan_, group, node, i, level) == levelAccess(group, level) &&
          (level == Level::Full ? canAbsorb(id, source, index) : canAbsorbRows(id, source, index));
      if (!moves) return false;
      if (std::ranges::count(*neighbours, source) == 0) neighbours->push_back(source);
    }
    return true;
  }

  std::vector<ValueId> withNodesOf(const std::vector<int>& groups, ValueId id) const {
    std::vector<ValueId> nodes = {id};
    for (int group : groups)
      nodes.insert(nodes.end(), plan_.groups[group].nodes.begin(), plan_.groups[group].nodes.end());
    return nodes;
  }

  bool fitsLimits(const FusionGroup& group, const std::vector<ValueId>& more) const {
    if (group.nodes.size() + more.size() > kMostNodes) return false;
    const std::vector<ValueId> nodes = united(group.nodes, more);
    const size_t loads = loadsOf(graph_, plan_, nodes, {}).size();
    return loads <= kMostLoads && compileMilliseconds(graph_, nodes, loads) <= kMostMilliseconds &&
           rulesAllow(graph_, nodes);
  }

  bool contains(const FusionGroup& group, ValueId id) const {
    return plan_.groupOf[id] >= 0 && &plan_.groups[plan_.groupOf[id]] == &group;
  }

  // ---- Fitting a node into a group ----

  bool fits(ValueId id, const FusionGroup& group, Fit* fit) const {
    const Node& node = graph_.node(id);
    if (ir::opKind(node.op) == Kind::Reduce) return fitsReduce(node, group, fit);
    fit->reduced = group.reduced;
    const Shape shape = squeezed(node.type.shape);
    const bool reduces = isReducing(group);
    // After a sweep the space is visited again, which only rows can do cheaply.
    const bool visits = !reduces || (sweepsAgain(group) && externalsMerge(group, node));
    if (shape == group.space && (visits || isSwept(id, group)) &&
        fitsLevel(node, group, Level::Full, fit) && (visits || fit->sweep == 0)) {
      return true;
    }
    return reduces && shape == keptShape(group) && fitsLevel(node, group, Level::Row, fit);
  }

  // A map that a sum of the group's only sweep will read, as the second sum of a batch norm's
  // gradient.
  bool isSwept(ValueId id, const FusionGroup& group) const {
    const bool summed = uses_.anyUser(id, [&](ValueId user) {
      const Node& node = graph_.node(user);
      return ir::opKind(node.op) == Kind::Reduce && reducedAxes(node) == group.reduced;
    });
    return summed && storesInSweep(group) && externalsMerge(group, graph_.node(id));
  }

  // Every operand that the group computes is read at this node's own elements.
  bool fitsLevel(const Node& node, const FusionGroup& group, Level level, Fit* fit) const {
    fit->level = level;
    fit->sweep = 0;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const ResolvedValue& value = plan_.values[node.operands[i]];
      if (!contains(group, value.base)) continue;
      const Level from = group.levels[position(group, value.base)];
      if (isLookedUp(node, i) || (level == Level::Row && from == Level::Full) ||
          operandAccess(graph_, plan_, group, node, i, level) != levelAccess(group, from)) {
        return false;
      }
      fit->sweep = std::max(fit->sweep, group.sweeps[position(group, value.base)]);
    }
    return true;
  }

  bool fitsReduce(const Node& node, const FusionGroup& group, Fit* fit) const {
    const ValueId operand = node.operands[0];
    const ResolvedValue& value = plan_.values[operand];
    const std::vector<bool> axes = reducedAxes(node);
    if (squeezed(graph_.type(operand).shape) != group.space ||
        (isReducing(group) && axes != group.reduced) || !contains(group, value.base) ||
        group.levels[position(group, value.base)] != Level::Full ||
        operandAccess(graph_, plan_, group, node, 0, Level::Full) !=
            levelAccess(group, Level::Full)) {
      return false;
    }
    FusionGroup after = group;
    after.reduced = axes;
    const int sweep = group.sweeps[position(group, value.base)];
    fit->level = Level::Row;
    fit->sweep = sweep + 1;
    fit->reduced = axes;
    for (ValueId member : group.nodes)
      if (!externalsMerge(after, graph_.node(member))) return false;
    return sweepsAgain(after) ||
           (sweep == 0 && (storesInSweep(after) || storesNothingFull(group, node)));
  }

  // A sweep along axis 0 can store as it goes; one across it would store with large strides, but
  // where it passes through a piece of memory in short runs, as over the pixels of an image.
  static bool storesInSweep(const FusionGroup& group) {
    const std::vector<bool>& axes = group.reduced;
    return axes.empty() || axes[0] || (!axes.back() && group.space[0] <= kShortRun);
  }

  // True if no full value of the group is needed outside of it and of `reader`.
  bool storesNothingFull(const FusionGroup& group, const Node& reader) const {
    for (size_t i = 0; i < group.nodes.size(); ++i) {
      const bool inside = uses_.allReaders(graph_, group.nodes[i], [&](ValueId user) {
        return contains(group, user) || &graph_.node(user) == &reader;
      });
      if (group.levels[i] == Level::Full && !inside) return false;
    }
    return true;
  }

  static bool isReducing(const FusionGroup& group) {
    return std::ranges::count(group.reduced, true) > 0 ||
           std::ranges::any_of(group.sweeps, [](int sweeps) { return sweeps > 0; });
  }

  // Axis 0 and its neighbours are reduced and no others: the row-wise kind (softmax, layer norm).
  static bool rowsOnly(const FusionGroup& group) {
    const std::vector<bool>& axes = group.reduced;
    return !axes.empty() && axes[0] && std::ranges::is_sorted(axes, std::greater());
  }

  // A row is swept by one thread: few long ones are better swept by kernels of their own, which
  // share each row among the threads.
  static bool sweepsAgain(const FusionGroup& group) {
    return rowsOnly(group) &&
           (keptShape(group).elements() > kFewRows || group.space.elements() <= kFewElements);
  }

  std::vector<bool> reducedAxes(const Node& node) const {
    const Shape& in = graph_.type(node.operands[0]).shape;
    const std::vector<Dim> axes = node.attrs.list(1);
    std::vector<bool> reduced;
    for (int i = 0; i < in.ndim(); ++i)
      if (in[i] != 1) reduced.push_back(axes.empty() || std::ranges::count(axes, i) > 0);
    return reduced;
  }

  // The reduction tree is defined on merged axes: what is loaded must merge where axes are reduced.
  bool externalsMerge(const FusionGroup& group, const Node& node) const {
    const bool full = squeezed(node.type.shape) == group.space;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId base = plan_.values[node.operands[i]].base;
      if (!full || graph_.isNumber(base) || contains(group, base)) continue;
      if (!mergesWhereReduced(group, operandAccess(graph_, plan_, group, node, i, Level::Full)))
        return false;
    }
    return true;
  }

  // ---- Absorbing operand groups ----

  // Maps whose values only this node's group reads are computed there instead of through memory.
  void absorbOperands(ValueId id) {
    const int target = plan_.groupOf[id];
    if (target < 0) return;
    for (ValueId operand : graph_.node(id).operands) {
      const int source = plan_.groupOf[plan_.values[operand].base];
      if (source >= 0 && source != target && canAbsorb(id, source, target) &&
          fitsLimits(plan_.groups[target], plan_.groups[source].nodes)) {
        moveInto(source, target);
      }
    }
  }

  bool canAbsorb(ValueId id, int source, int target) const {
    const FusionGroup& from = plan_.groups[source];
    const FusionGroup& to = plan_.groups[target];
    if (isReducing(from) || from.space != to.space || !readsInPlace(from, to)) return false;
    for (ValueId member : from.nodes) {
      const bool inside = uses_.allReaders(graph_, member, [&](ValueId user) {
        return user == id || contains(from, user) || contains(to, user);
      });
      // Other readers must come after the target; those not placed yet will.
      const bool after = (rowsOnly(to) || !isReducing(to)) && readersAreAfter(member, id, from, to);
      if ((!inside && !after) || (isReducing(to) && !externalsMerge(to, graph_.node(member))))
        return false;
    }
    return true;
  }

  // The same for what `to` may compute for each row: a map over the kept axes, or other sums of the
  // same sweep.
  bool canAbsorbRows(ValueId id, int source, int target) const {
    const FusionGroup& from = plan_.groups[source];
    const FusionGroup& to = plan_.groups[target];
    const bool isMap = !isReducing(from) && rowsOnly(to) && from.space == keptShape(to) &&
                       from.space.elements() > 1;
    const bool isSweep = isReducing(from) && from.space == to.space && from.reduced == to.reduced &&
                         std::ranges::max(from.sweeps) == 1 && std::ranges::max(to.sweeps) == 1;
    return (isMap || isSweep) && std::ranges::all_of(from.nodes, [&](ValueId member) {
             return readersAreAfter(member, id, from, to);
           });
  }

  // True if `fits(node, level, k)` for every operand k that a node of `to` reads of `from`.
  template <class F>
  bool allReads(const FusionGroup& from, const FusionGroup& to, F&& fits) const {
    for (size_t i = 0; i < to.nodes.size(); ++i) {
      const Node& node = graph_.node(to.nodes[i]);
      for (size_t k = 0; k < node.operands.size(); ++k) {
        if (contains(from, plan_.values[node.operands[k]].base) &&
            (isLookedUp(node, k) || !fits(node, to.levels[i], k))) {
          return false;
        }
      }
    }
    return true;
  }

  // True if whatever `to` reads of the map `from`, it reads element by element over the whole
  // space.
  bool readsInPlace(const FusionGroup& from, const FusionGroup& to) const {
    return allReads(from, to, [&](const Node& node, Level level, size_t k) {
      return (ir::opKind(node.op) == Kind::Reduce || level == Level::Full) &&
             operandAccess(graph_, plan_, to, node, k, Level::Full) == levelAccess(to, Level::Full);
    });
  }

  bool readersAreAfter(ValueId member, ValueId placing, const FusionGroup& from,
                       const FusionGroup& to) const {
    const int depth = groupDepth_[&to - plan_.groups.data()];
    const auto isBehind = [&](ValueId user) {
      return user >= placing || contains(from, user) || contains(to, user) || depthOf(user) > depth;
    };
    return uses_.allReaders(graph_, member, isBehind, /*orResult=*/true);
  }

  // Maps over the kept axes of a row-wise group, read by it alone, are computed there for each row.
  void absorbRows() {
    for (size_t source = plan_.groups.size(); source-- > 0;) {
      const int target = soleReader(static_cast<int>(source));
      if (target < 0) continue;
      FusionGroup& from = plan_.groups[source];
      const FusionGroup& to = plan_.groups[target];
      if (!isReducing(from) && rowsOnly(to) && from.space == keptShape(to) &&
          readsAsRows(from, to) && fitsLimits(to, from.nodes)) {
        from.levels.assign(from.nodes.size(), Level::Row);
        moveInto(static_cast<int>(source), target);
      }
    }
  }

  // The one group that reads values of group `source`; -1 if there is none or another reader.
  int soleReader(int source) const {
    int reader = -1;
    for (ValueId member : plan_.groups[source].nodes) {
      const bool sole = uses_.allReaders(graph_, member, [&](ValueId user) {
        const int group = plan_.groupOf[user];
        if (group == source) return true;
        reader = reader < 0 ? group : reader;
        return group >= 0 && group == reader;
      });
      if (!sole) return -1;
    }
    return reader;
  }

  bool readsAsRows(const FusionGroup& from, const FusionGroup& to) const {
    return allReads(from, to, [&](const Node& node, Level level, size_t k) {
      return ir::opKind(node.op) != Kind::Reduce &&
             operandAccess(graph_, plan_, to, node, k, level) == levelAccess(to, Level::Row);
    });
  }

  void moveInto(int source, int target) {
    moveGroup(&plan_, source, target);
    groupDepth_[target] = std::max(groupDepth_[target], groupDepth_[source]);
  }

  const Graph& graph_;
  FusionPlan& plan_;
  Uses uses_;
  const bool viewsAreCalls_;
  std::vector<int> depth_;  // of values that run alone
  std::vector<int> groupDepth_;
};

}  // namespace

bool rulesAllow(const Graph& graph, const std::vector<ValueId>& nodes) {
  const auto allows = [&](const FusionRule& rule) { return rule.allows(graph, nodes); };
  return std::ranges::all_of(*fusionRules().all(), allows);
}

void fuse(Compilation& compilation) { Fuser(compilation).run(); }

}  // namespace fl::codegen
