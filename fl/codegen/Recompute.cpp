// Decides which values groups compute again instead of reading them from memory: maps of a few
// short operators on what the group reads anyway, or on what is no larger than the value and is in
// memory anyway. Between the forward and the backward pass of a network that are the tensors that a
// group makes on its way: the centered input of a batch norm, the mask of a ReLU, the error
// function of a GELU. A value that all its readers compute again is never written.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <set>
#include <tuple>

#include "fl/codegen/FusionCost.h"
#include "fl/codegen/FusionUses.h"
#include "fl/codegen/Passes.h"

namespace fl::codegen {
namespace {

// The work that a group does again, in simple operators, and how many stand one on another: on
// vectors in the cache it takes about as long as a few loads, and less than one from memory.
constexpr size_t kMostAgain = 16, kMostDepth = 8;
// Of what is few, as both operands of all pairs are: as the write and the read of a value take.
constexpr size_t kMostOfFew = 32, kMostDepthOfFew = 24;
constexpr size_t kFunction = 4;  // the work of an exponential, a logarithm, an error function

class Recomputer {
 public:
  explicit Recomputer(Compilation& compilation)
      : graph_(compilation.graph),
        plan_(compilation.fusion),
        uses_(graph_, plan_),
        stored_(storedValues(graph_, plan_)),
        overwritten_(graph_.valueCount(), false) {
    for (const Node& node : graph_.nodes())
      if (ir::opKind(node.op) == Kind::Update)
        overwritten_[plan_.values[node.operands[0]].base] = true;
  }

  void run() {
    for (ValueId id = 0; id < graph_.valueCount(); ++id)
      if (plan_.groupOf[id] >= 0 && stored_[id]) consider(id);
    mergeGroups();
    dropEmptyGroups(&plan_);
  }

 private:
  // A way for a group to have a value without reading it.
  struct Way {
    std::map<ValueId, size_t> again = {};  // what it computes for it, and the work
    // Bytes an element that it does not read anyway, and those that are stored for it alone.
    std::map<ValueId, size_t> read = {}, written = {};

    // In simple operators: as many take as long as a byte of an element that comes through memory.
    static constexpr size_t kByte = 4;
    size_t cost() const { return sum(again) + kByte * (sum(read) + sum(written)); }
    static size_t sum(const std::map<ValueId, size_t>& of) {
      auto sizes = std::views::values(of);
      return std::accumulate(sizes.begin(), sizes.end(), size_t{0});
    }
    void add(const Way& other) {
      again.insert(other.again.begin(), other.again.end());
      read.insert(other.read.begin(), other.read.end());
      written.insert(other.written.begin(), other.written.end());
    }
  };

  // A group that reads the value `id`, and what it loads.
  struct Reader {
    int group;
    ValueId id;
    std::vector<ValueId> loads;
    bool ofFew = false;  // nothing else is read
    // What is known of the ways it has: by value and depth. There may be thousands of paths to one.
    std::map<std::pair<ValueId, size_t>, std::optional<Way>> ways = {};
  };

  // All readers have to find a way.
  void consider(ValueId id) {
    std::map<int, std::vector<ValueId>> before;
    for (int group : readersOf(id)) {
      before[group] = plan_.groups[group].again;
      Reader reader{group, id, loadsOfGroup(group)};
      const std::optional<Way> way = bestWay(&reader);
      if (!way || !apply(*way, group)) {
        for (auto& [changed, again] : before) plan_.groups[changed].again = std::move(again);
        return;
      }
    }
    stored_[id] = before.empty();
    for (const auto& [group, again] : before) {
      forEachRead(graph_, plan_, plan_.groups[group].again, id,
                  [&](ValueId read) { stored_[plan_.values[read].base] = true; });
    }
  }

  // The groups that read a value of another, if all who do only compute with its elements, each
  // once and in place; else none.
  std::set<int> readersOf(ValueId id) const {
    const int own = plan_.groupOf[id];
    std::set<int> groups;
    const bool computed = uses_.allReaders(graph_, id, [&](ValueId user) {
      const int group = plan_.groupOf[user];
      if (group != own) groups.insert(group);
      return group == own || (group >= 0 && readsInPlace(user, id));
    });
    return computed ? groups : std::set<int>();
  }

  bool readsInPlace(ValueId user, ValueId id) const {
    const Node& node = graph_.node(user);
    const FusionGroup& group = plan_.groups[plan_.groupOf[user]];
    const bool reduces = ir::opKind(node.op) == Kind::Reduce;
    const Level level = reduces ? Level::Full : group.levels[position(group, user)];
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const ResolvedValue& value = plan_.values[node.operands[k]];
      if (value.base == id &&
          (!sameElements(graph_, value, graph_.type(node.operands[k]).shape) ||
           !(operandAccess(graph_, plan_, group, node, k, level) == levelAccess(group, level)))) {
        return false;
      }
    }
    return reduces || ir::isElementwise(node.op);
  }

  std::vector<ValueId> loadsOfGroup(int group) const {
    return loadsOf(graph_, plan_, united(plan_.groups[group].nodes), plan_.groups[group].again);
  }

  // ---- Ways ----

  std::optional<Way> bestWay(Reader* reader) const {
    const size_t size = getTypeSize(graph_.type(reader->id).type);
    std::optional<Way> way = computed(reader->id, reader, kMostDepth);
    const size_t bytes = way ? Way::sum(way->read) : 0;
    const bool saves = bytes < size || (bytes == size && Way::sum(way->written) == 0);
    if (way && saves) return way;
    Reader ofFew{reader->group, reader->id, reader->loads, true};
    return computed(reader->id, &ofFew, kMostDepthOfFew);
  }

  // 0: too much.
  static size_t workOf(const Node& node) {
    const bool divides = node.op == Op::Mod || (node.op == Op::Div && !isFloating(node.type.type));
    const double ulp = ir::opInfo(node.op).ulp;
    return !ir::isElementwise(node.op) || divides || ulp > 1 ? 0 : ulp > 0.5 ? kFunction : 1;
  }

  // With at most `depth` operators one on another.
  std::optional<Way> computed(ValueId id, Reader* reader, size_t depth) const {
    if (depth == 0 || plan_.groupOf[id] < 0 || workOf(graph_.node(id)) == 0) return std::nullopt;
    const auto known = reader->ways.find({id, depth});
    return known != reader->ways.end() ? known->second
                                       : reader->ways[{id, depth}] = computedOf(id, reader, depth);
  }

  std::optional<Way> computedOf(ValueId id, Reader* reader, size_t depth) const {
    Way way{{{id, workOf(graph_.node(id))}}};
    for (ValueId operand : graph_.node(id).operands) {
      const std::optional<Way> read = had(operand, reader, depth - 1);
      if (!read) return std::nullopt;
      way.add(*read);
    }
    const size_t most = reader->ofFew ? kMostOfFew : kMostAgain;
    return Way::sum(way.again) <= most ? std::optional(way) : std::nullopt;
  }

  // The best way to have an operand of what is computed.
  std::optional<Way> had(ValueId operand, Reader* reader, size_t depth) const {
    const ValueId base = plan_.values[operand].base;
    const bool inPlace = sameElements(graph_, plan_.values[operand], graph_.type(operand).shape);
    const bool again = std::ranges::binary_search(plan_.groups[reader->group].again, base);
    if (graph_.isNumber(base)) return Way{};
    if (plan_.inlined[base] || again) return inPlace ? std::optional(Way{}) : std::nullopt;
    const std::optional<Way> load = loaded(operand, *reader);
    const std::optional<Way> way = inPlace ? computed(base, reader, depth) : std::nullopt;
    return way && (!load || way->cost() < load->cost()) ? way : load;
  }

  std::optional<Way> loaded(ValueId operand, const Reader& reader) const {
    const ResolvedValue& value = plan_.values[operand];
    const Shape& shape = graph_.type(operand).shape;
    const Dim elements = graph_.type(reader.id).shape.elements();
    // What repeats along an axis counts for nothing, however short that is: kernels are made for
    // all extents.
    const bool few = graph_.type(value.base).shape.elements() < elements;
    const bool whole = shape.elements() == elements && sameElements(graph_, value, shape);
    const bool inMemory = plan_.groupOf[value.base] < 0 || stored_[value.base];
    if (overwritten_[value.base] || !(few || (whole && !reader.ofFew)) ||
        !(few || inMemory || isKnownWith(value.base, reader.id))) {
      return std::nullopt;
    }
    const size_t size = few ? 0 : getTypeSize(graph_.type(value.base).type);
    const bool isLoaded = std::ranges::any_of(
        reader.loads, [&](ValueId load) { return plan_.values[load].base == value.base; });
    return Way{{}, {{value.base, isLoaded ? 0 : size}}, {{value.base, inMemory ? 0 : size}}};
  }

  // True if `id` can be stored where `value` is.
  bool isKnownWith(ValueId id, ValueId value) const {
    const FusionGroup& group = plan_.groups[plan_.groupOf[value]];
    if (plan_.groupOf[id] != plan_.groupOf[value]) return false;
    const size_t i = position(group, id), k = position(group, value);
    return group.levels[i] == group.levels[k] && group.sweeps[i] == group.sweeps[k];
  }

  // ---- Applying them ----

  // False if the group would not be a kernel then.
  bool apply(const Way& way, int index) {
    FusionGroup& group = plan_.groups[index];
    std::ranges::copy(std::views::keys(way.again), std::back_inserter(group.again));
    std::ranges::sort(group.again);
    const auto add = [&](size_t sum, ValueId id) { return sum + workOf(graph_.node(id)); };
    const size_t work = std::accumulate(group.again.begin(), group.again.end(), size_t{0}, add);
    const size_t most = Way::sum(way.read) == 0 ? kMostOfFew : kMostAgain;
    return work <= most && isKernel(group) && loadsOfGroup(index).size() <= kMostLoads &&
           rulesAllow(graph_, united(group.nodes, group.again));
  }

  // Whether a kernel can hold what the group reads for what it computes again.
  bool isKernel(const FusionGroup& group) const {
    for (size_t i = 0; i < group.nodes.size(); ++i) {
      const Node& node = graph_.node(group.nodes[i]);
      for (size_t k = 0; k < node.operands.size(); ++k) {
        const ValueId operand = node.operands[k];
        if (!std::ranges::binary_search(group.again, plan_.values[operand].base)) continue;
        const auto reads = findReads(graph_, plan_, group.again, operand);
        const auto fits = [&](const GroupRead& read) {
          return ir::isContiguous(read.layout, graph_.type(operand).shape) ||
                 (group.space.ndim() <= ir::kMaxRank &&
                  mergesWhereReduced(
                      group, operandAccess(graph_, read.layout, group, node, k, group.levels[i])));
        };
        if (!reads || !std::ranges::all_of(*reads, fits)) return false;
      }
    }
    return true;
  }

  // Groups that sum up along the same axes what they compute of the same values do it together:
  // neither depends on the other.
  void mergeGroups() {
    std::map<std::tuple<std::vector<Dim>, std::vector<bool>, std::vector<ValueId>>, int> first;
    for (int i = 0; i < std::ssize(plan_.groups); ++i) {
      const FusionGroup& group = plan_.groups[i];
      if (group.again.empty() || std::ranges::count(group.sweeps, 1) != std::ssize(group.sweeps))
        continue;
      const auto [place, isNew] =
          first.try_emplace({group.space.get(), group.reduced, loadsOfGroup(i)}, i);
      if (!isNew && isKernelWith(plan_.groups[place->second], group))
        moveGroup(&plan_, i, place->second);
    }
  }

  bool isKernelWith(const FusionGroup& one, const FusionGroup& other) const {
    const std::vector<ValueId> nodes =
        united(united(one.nodes, other.nodes), united(one.again, other.again));
    return nodes.size() <= kMostNodes && rulesAllow(graph_, nodes);
  }

  const Graph& graph_;
  FusionPlan& plan_;
  const Uses uses_;
  std::vector<bool> stored_;
  std::vector<bool> overwritten_;  // whether an update may be written over the value
};

}  // namespace

void recompute(Compilation& compilation) { Recomputer(compilation).run(); }

}  // namespace fl::codegen
