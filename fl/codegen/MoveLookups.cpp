// Rules that compute maps at some places alone: those that data looks up, or all along a short
// axis, one by one.
#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "fl/base/Error.h"
#include "fl/codegen/MoveRules.h"

namespace fl::codegen {
namespace {

// Operators are computed again for what is looked up if that is at most one in so many elements,
// and for so many operators.
constexpr Dim kOneIn = 4;
constexpr size_t kMostMoved = 32;

// A sum of more is worth a sweep, and so is one of more operators for all its places.
constexpr Dim kShort = 8;
constexpr size_t kMostUnrolled = 96;

struct Axis {
  Dim number;
  Dim size;
};

// Whether a value varies along an axis.
struct VariesAlong {
  const Graph& graph;
  Axis axis;

  bool operator()(ValueId id) const {
    const Shape& shape = graph.type(id).shape;
    return !graph.isNumber(id) && shape.ndim() > axis.number && shape[axis.number] == axis.size;
  }
};

auto isNoScalar(const Graph& graph) {
  return [&](ValueId id) { return graph.type(id).shape.elements() != 1; };
}

// `id` and the elementwise operators before it that vary as `varies` says, operands first.
template <typename Varies>
std::set<ValueId> mapsBefore(const Graph& graph, ValueId id, Varies&& varies) {
  std::set<ValueId> maps;
  std::vector<ValueId> waiting = {id};
  while (!waiting.empty() && maps.size() < kMostMoved) {
    const ValueId next = waiting.back();
    waiting.pop_back();
    const bool isMap = !graph.isParameter(next) && ir::isElementwise(graph.node(next).op);
    if (isMap && varies(next) && maps.insert(next).second) {
      const auto& operands = graph.node(next).operands;
      waiting.insert(waiting.end(), operands.begin(), operands.end());
    }
  }
  return maps;
}

// The same lookup in another table, which may have fewer dimensions than the first.
ValueId lookUp(Graph& graph, ValueId table, const Node& gather) {
  const Shape& index = graph.type(gather.operands[1]).shape;
  std::vector<Dim> dims = graph.type(table).shape.get();
  dims.resize(std::max<size_t>(dims.size(), index.ndim()), 1);
  table = reshaped(graph, table, Shape(dims), gather.site);
  for (int i = 0; i < index.ndim(); ++i)
    dims[i] = i == gather.attrs[0] || dims[i] == 1 ? index[i] : dims[i];
  Node moved = gather;  // an error finds its call by it
  moved.operands[0] = table;
  moved.type = {graph.type(table).type, Shape(dims)};
  return graph.addNode(std::move(moved));
}

// `source` with the maps before it computed of what `take` finds in the place of their operands
// that vary.
template <typename Varies, typename Take>
ValueId moveBefore(Graph& graph, ValueId source, const std::set<ValueId>& maps, Varies&& varies,
                   Take&& take) {
  std::map<ValueId, ValueId> moved;
  const auto taken = [&](ValueId id) {
    if (!varies(id)) return id;
    const auto [place, isNew] = moved.try_emplace(id, -1);
    if (isNew) place->second = take(id);
    return place->second;
  };
  for (const ValueId id : maps) {
    const Node map = graph.node(id);
    std::vector<ValueId> operands;
    for (const ValueId operand : map.operands) operands.push_back(taken(operand));
    moved[id] = graph.addNode(map.op, std::move(operands), map.attrs, map.site);
  }
  return moved.at(source);
}

}  // namespace

ValueId moveLookup(Graph& graph, const Node& node) {
  if (node.op != Op::Gather) return -1;
  const ValueId source = node.operands[0];
  const Shape from = graph.type(source).shape;
  const Axis axis{node.attrs[0], from[node.attrs[0]]};
  const VariesAlong varies{graph, axis};
  const std::set<ValueId> maps = mapsBefore(graph, source, varies);
  if (maps.empty() || axis.size == 1 || node.type.shape.elements() * kOneIn > from.elements())
    return -1;
  const ValueId moved =
      moveBefore(graph, source, maps, varies, [&](ValueId id) { return lookUp(graph, id, node); });
  FL_INTERNAL_CHECK(graph.type(moved) == node.type, "a moved gather has another type");
  return moved;
}

namespace {

// How many elements the maps before a value read of memory; as many as there can be if the maps are
// many.
Dim elementsRead(const Graph& graph, ValueId id) {
  std::set<ValueId> seen;
  std::vector<ValueId> waiting = {id};
  Dim elements = 0;
  while (!waiting.empty()) {
    const ValueId next = waiting.back();
    waiting.pop_back();
    if (graph.isNumber(next) || !seen.insert(next).second) continue;
    if (seen.size() > kMostUnrolled) return std::numeric_limits<Dim>::max() / kOneIn;
    const Node* const node = graph.isParameter(next) ? nullptr : &graph.node(next);
    const bool isView = node && ir::opKind(node->op) == ir::Kind::View;
    if (isView || (node && ir::isElementwise(node->op)))
      waiting.insert(waiting.end(), node->operands.begin(), node->operands.end());
    else if (!node || ir::opKind(node->op) != ir::Kind::Source)
      elements += graph.type(next).shape.elements();
  }
  return elements;
}

// A sum of maps, the places along a short axis of which are computed one by one.
class UnrolledSum {
 public:
  UnrolledSum(Graph& graph, const Node& sum, Axis axis)
      : graph_(graph),
        sum_(sum),
        axis_(axis),
        varies_{graph, axis},
        maps_(mapsBefore(graph, source(), varies_)) {}

  // Whether the maps make many elements of few.
  bool isWorthIt() const {
    const Dim places = graph_.type(source()).shape.elements() / axis_.size;
    return places > 0 && !maps_.empty() && maps_.size() < kMostMoved &&
           maps_.size() * axis_.size <= kMostUnrolled &&
           elementsRead(graph_, source()) <= places / kOneIn;
  }

  // Whether some of the maps read what others, which are as many, compute once for all places.
  bool sharesMaps() const {
    const auto isShared = [&](ValueId id) {
      return !graph_.isParameter(id) && ir::isElementwise(graph_.node(id).op) &&
             graph_.type(id).shape.elements() * axis_.size ==
                 graph_.type(source()).shape.elements();
    };
    return std::ranges::any_of(
        maps_, [&](ValueId id) { return std::ranges::any_of(graph_.node(id).operands, isShared); });
  }

  // The sum along the axis, by the tree of fl/kernel/Kernel.h.
  ValueId total(bool isOfRows) {
    const auto type = static_cast<Dim>(sum_.type.type);
    const auto add = [&](ValueId x, ValueId y) {
      return graph_.addNode(Op::Add, {x, y}, {}, sum_.site);
    };
    std::vector<ValueId> all;
    for (Dim place = 0; place < axis_.size; ++place) all.push_back(at(place));
    // From 0 on, which is the sum of -0, too.
    all[0] = add(graph_.addNode(Op::Iota, {}, {type, 0, 1}, sum_.site), all[0]);
    for (size_t width = kShort / 2; isOfRows && width >= 1; width /= 2)
      for (; all.size() > width; all.pop_back())
        all[all.size() - 1 - width] = add(all[all.size() - 1 - width], all.back());
    for (size_t place = 1; place < all.size(); ++place) all[0] = add(all[0], all[place]);
    return shaped(all[0]);
  }

  // Whether two axes of all that the sum is made of may be swapped.
  bool maySwap() const {
    const size_t maps = mapsBefore(graph_, source(), isNoScalar(graph_)).size();
    return maps < kMostMoved && maps * axis_.size <= kMostUnrolled;
  }

  // The sums along the axis `summed`, one for each place, with the axis `other` in its place.
  ValueId parts(Dim summed, Dim other) {
    std::vector<Dim> dims = graph_.type(source()).shape.get();
    dims[axis_.number] = dims[summed] = 1;
    std::vector<ValueId> parts;
    for (Dim place = 0; place < axis_.size; ++place) {
      const ValueId maps = summed == other ? at(place) : swappedAt(place, summed, other);
      const ValueId part = graph_.addNode(Op::Sum, {maps}, {1, other}, sum_.site);
      parts.push_back(reshaped(graph_, part, Shape(dims), sum_.site));
    }
    return shaped(graph_.addNode(Op::Concatenate, std::move(parts), {axis_.number}, sum_.site));
  }

 private:
  ValueId source() const { return sum_.operands[0]; }

  // Without the dimensions summed, unless the sum keeps them.
  ValueId shaped(ValueId id) { return reshaped(graph_, id, sum_.type.shape, sum_.site); }

  ValueId partOf(ValueId id, Dim place) {
    return varies_(id) ? sliceAlong(graph_, id, axis_.number, place, 1, sum_.site) : id;
  }

  ValueId at(Dim place) {
    return moveBefore(graph_, source(), maps_, varies_,
                      [&](ValueId id) { return partOf(id, place); });
  }

  // The same with two axes in each other's place. All maps are computed in that order, as no kernel
  // computes in two.
  ValueId swappedAt(Dim place, Dim axis, Dim other) {
    const auto varies = isNoScalar(graph_);
    return moveBefore(graph_, source(), mapsBefore(graph_, source(), varies), varies,
                      [&](ValueId id) { return swapped(partOf(id, place), axis, other); });
  }

  ValueId swapped(ValueId id, Dim axis, Dim other) {
    std::vector<Dim> dims = graph_.type(id).shape.get(), order(graph_.type(source()).shape.ndim());
    dims.resize(order.size(), 1);
    id = reshaped(graph_, id, Shape(dims), sum_.site);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[axis], order[other]);
    return graph_.addNode(Op::Transpose, {id}, ir::Attrs(order), sum_.site);
  }

  Graph& graph_;
  const Node& sum_;
  const Axis axis_;
  const VariesAlong varies_;
  const std::set<ValueId> maps_;
};

}  // namespace

ValueId sliceAlong(Graph& graph, ValueId id, Dim axis, Dim start, Dim size, CallSite site) {
  std::vector<Dim> box = graph.type(id).shape.get();
  const size_t rank = box.size();
  box[axis] = size;
  box.resize(2 * rank, 1);
  box.resize(3 * rank, 0);
  box[2 * rank + axis] = start;
  return graph.addNode(Op::Slice, {id}, ir::Attrs({static_cast<Dim>(rank)}, box), site);
}

ValueId unrollSum(Graph& graph, const Node& node) {
  const bool isFloat = node.type.type == dtype::f32 || node.type.type == dtype::f64;
  if (node.op != Op::Sum || !isFloat) return -1;
  const Shape shape = graph.type(node.operands[0]).shape;
  std::vector<Dim> axes = node.attrs.list(1), kept;
  std::erase_if(axes, [&](Dim axis) { return shape[axis] == 1; });
  if (axes.size() != 1) return -1;
  for (Dim axis = 0; axis < shape.ndim(); ++axis)
    if (shape[axis] != 1 && axis != axes[0]) kept.push_back(axis);
  const auto isShort = [&](Dim axis) { return shape[axis] > 1 && shape[axis] <= kShort; };
  // A row is summed up in another order than a column.
  const bool isOfRows = kept.empty() || axes[0] < kept[0];
  if (isShort(axes[0])) {
    UnrolledSum sum(graph, node, {axes[0], shape[axes[0]]});
    return sum.isWorthIt() ? sum.total(isOfRows) : -1;
  }
  for (const Dim axis : kept) {
    const bool becomesRow = axis == kept[0] && !isOfRows && (kept.size() == 1 || axes[0] < kept[1]);
    if (!isShort(axis) || (becomesRow && kept.size() == 1)) continue;
    UnrolledSum sum(graph, node, {axis, shape[axis]});
    if (sum.isWorthIt() && sum.sharesMaps() && (!becomesRow || sum.maySwap()))
      return sum.parts(axes[0], becomesRow ? kept[1] : axes[0]);
  }
  return -1;
}

}  // namespace fl::codegen
