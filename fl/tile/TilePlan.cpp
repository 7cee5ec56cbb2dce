#include "fl/tile/TilePlan.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "fl/base/Error.h"
#include "fl/base/Fault.h"

namespace fl::tile {
namespace {

using ir::Kernel;
using ir::KernelOperand;
using ir::KernelStage;
using ir::KernelValue;
using Form = KernelValue::Form;

bool varies(const KernelOperand& operand, int axis) {
  return operand.strides[axis] != ir::Stride::Zero;
}

std::vector<Level> findLevels(const Kernel& kernel) {
  std::vector<Level> levels;
  for (const KernelValue& value : kernel.values) {
    Level level = value.form == Form::Total ? Level::Kept : Level::Uniform;
    if (value.form == Form::Load) {
      for (int axis = 0; axis < kernel.rank; ++axis) {
        if (varies(kernel.operands[value.index], axis)) {
          level = std::max(level, kernel.isReduced(axis) ? Level::Swept : Level::Kept);
        }
      }
    }
    for (int arg : value.args) level = std::max(level, levels[arg]);
    levels.push_back(level);
  }
  return levels;
}

TileFunction findFunction(const Kernel& kernel, const KernelValue& value, const TileOps& ops) {
  const auto typeOf = [&](int arg) {
    return static_cast<int>(kernel.values[value.args[arg]].type);
  };
  TileFunction function = nullptr;
  if (value.op == ir::Op::Cast) {
    function = ops.cast[typeOf(0)][static_cast<int>(value.type)];
  } else if (value.op == ir::Op::Random) {
    function = (drawsNumber(value) ? ops.uniform : ops.normal)[static_cast<int>(value.type)];
  } else {
    const int typed = opKind(value.op) == ir::Kind::Select ? 1 : 0;
    const int type = value.isShort ? static_cast<int>(dtype::f16) : typeOf(typed);
    const bool isFaulty = value.op == ir::Op::Sub && isWrong("interpreter");
    function = ops.apply[static_cast<int>(isFaulty ? ir::Op::Add : value.op)][type];
  }
  FL_INTERNAL_CHECK(function, opName(value.op), " has no tile function for ", value.type);
  return function;
}

// Whether computing a value again takes longer than reading it.
bool isSlow(const KernelValue& value) {
  return value.form == Form::Apply && (value.op == ir::Op::Random || ir::opInfo(value.op).ulp >= 1);
}

// Turns a kernel's values into steps. Every location is a new one; Allocation shares their memory.
class Planner {
 public:
  Planner(const Kernel& kernel, const TileOps& ops, bool keepsRows, TilePlan* plan)
      : kernel_(kernel),
        ops_(ops),
        plan_(*plan),
        levels_(findLevels(kernel)),
        own_(kernel.values.size(), -1),
        expanded_(kernel.values.size(), -1),
        rows_(kernel.values.size(), -1) {
    if (keepsRows && kernel.rows()) findRows();
  }

  void run() {
    for (const KernelStage& stage : kernel_.stages) {
      for (const KernelStage::Reduce& reduce : stage.reduces) {
        results_.push_back(newLocation(kernel_.values[reduce.value].type));
      }
    }
    for (const KernelStage& stage : kernel_.stages) planStage(stage);
    plan_.findsRuns = findsRuns();
  }

 private:
  // How much higher each value is one element further along axis 0, if that is known.
  std::vector<std::optional<int>> findSteps() const {
    std::vector<std::optional<int>> steps;
    for (const KernelValue& value : kernel_.values) {
      std::optional<int>& step = steps.emplace_back(0);
      if (value.form == Form::Load && varies(kernel_.operands[value.index], 0)) {
        const KernelOperand& operand = kernel_.operands[value.index];
        const bool counts =
            operand.role == KernelOperand::Role::Index && operand.strides[0] == ir::Stride::One;
        step = counts ? std::optional(1) : std::nullopt;
      }
      for (int arg : value.args) {
        const std::optional<int> its = steps[arg];
        const bool isKnown = step && its && (*its == 0 || value.op == ir::Op::Add);
        step = isKnown ? std::optional(std::min(*step + *its, 2)) : std::nullopt;
      }
    }
    return steps;
  }

  bool findsRuns() const {
    if (kernel_.rank < 2 || kernel_.stages.size() != 1 || kernel_.stages[0].sweep) return false;
    const std::vector<KernelStage::Store>& stores = kernel_.stages[0].stores;
    const KernelValue& value = kernel_.values[stores[0].value];
    if (stores.size() != 1 || value.form != Form::Gather ||
        kernel_.operands[stores[0].operand].strides[0] != ir::Stride::One) {
      return false;
    }
    const std::vector<std::optional<int>> steps = findSteps();
    return steps[value.args[0]] == 1 && steps[value.args[1]] == 0 && steps[value.args[2]] == 0;
  }

  int newLocation(dtype type) {
    plan_.locations.push_back({static_cast<int>(getTypeSize(type))});
    return static_cast<int>(plan_.locations.size()) - 1;
  }

  // Gives a row to each slow value that more than one sweep needs.
  void findRows() {
    std::vector<int> sweeps(kernel_.values.size(), 0);
    for (const KernelStage& stage : kernel_.stages) {
      const std::vector<bool> needed = findNeeded(stage);
      for (size_t v = 0; v < needed.size(); ++v) sweeps[v] += stage.sweep && needed[v];
    }
    for (size_t v = 0; v < sweeps.size(); ++v) {
      if (levels_[v] == Level::Swept && sweeps[v] > 1 && isSlow(kernel_.values[v])) {
        rows_[v] = newLocation(kernel_.values[v].type);
        TileLocation& row = plan_.locations.back();
        row.row = true;
        row.offset = plan_.rowBytes;
        plan_.rowBytes += row.width;
      }
    }
  }

  int newView(int operand, Level level) {
    plan_.views.push_back({operand, level});
    return static_cast<int>(plan_.views.size()) - 1;
  }

  void planStage(const KernelStage& stage) {
    TileStage& planned = plan_.stages.emplace_back();
    planned.sweep = stage.sweep;
    const Level level = stage.sweep ? Level::Swept : Level::Kept;
    const std::vector<bool> needed = findNeeded(stage);
    for (size_t v = 0; v < needed.size(); ++v) {
      const bool known = levels_[v] != Level::Swept && own_[v] >= 0;
      FL_INTERNAL_CHECK(!needed[v] || levels_[v] <= level, "%", v, " changes in a sweep only");
      if (needed[v] && !known) compute(static_cast<int>(v), &planned);
    }
    for (TileStep& step : planned.swept) {
      for (int& arg : step.args) arg = arg < 0 ? arg : readAt(arg, level, &planned);
    }
    for (const KernelStage::Reduce& reduce : stage.reduces) addReduce(reduce, &planned);
    for (const KernelStage::Store& store : stage.stores) {
      planned.stores.push_back(
          {newView(store.operand, level), readAt(store.value, level, &planned)});
    }
    std::vector<TileStep>& steps = stage.sweep ? planned.swept : planned.kept;
    // What is kept may be read by later stages.
    if (stage.sweep || kernel_.stages.size() == 1) joinPairs(&steps, planned);
    keepLoadsFromStores(&steps, planned);
  }

  // Makes one step of two where the second alone reads what the first makes.
  void joinPairs(std::vector<TileStep>* all, const TileStage& stage) const {
    std::vector<TileStep>& steps = *all;
    std::vector<int> uses(plan_.locations.size(), 0);
    const auto use = [&](int location) {
      if (location >= 0) ++uses[location];
    };
    for (const TileStep& step : steps) std::ranges::for_each(step.args, use);
    for (const TileReduce& reduce : stage.reduces) use(reduce.location);
    for (const TileStore& store : stage.stores) use(store.location);
    for (size_t i = 0; i < steps.size(); ++i) {
      for (const TilePair& pair : ops_.pairs) {
        if (steps[i].function != pair.second) continue;
        const int made = steps[i].args[pair.place];
        const auto first = std::ranges::find(steps, made, &TileStep::target);
        if (first == steps.end() || first->function != pair.first || uses[made] != 1 ||
            plan_.locations[made].row) {
          continue;
        }
        steps[i].function = pair.both;
        steps[i].args[2] = steps[i].args[1 - pair.place];
        std::copy_n(first->args, 2, steps[i].args);
        steps.erase(first);
        --i;
        break;
      }
    }
  }

  // Whether an earlier sweep has left the value in its row.
  bool isInRow(size_t v) const { return rows_[v] >= 0 && own_[v] == rows_[v]; }

  // The values that a stage depends on.
  std::vector<bool> findNeeded(const KernelStage& stage) const {
    std::vector<bool> needed(kernel_.values.size(), false);
    for (const KernelStage::Reduce& reduce : stage.reduces) needed[reduce.value] = true;
    for (const KernelStage::Store& store : stage.stores) needed[store.value] = true;
    for (size_t v = needed.size(); v-- > 0;) {
      if (isInRow(v)) continue;
      for (int arg : kernel_.values[v].args) needed[arg] = needed[arg] || needed[v];
    }
    return needed;
  }

  // Adds the step of a value at its own level. A swept step's arguments are values until planStage
  // turns them into locations.
  void compute(int v, TileStage* stage) {
    const KernelValue& value = kernel_.values[v];
    const Level level = levels_[v];
    if (value.form == Form::Total) {
      own_[v] = results_[value.index];
      return;
    }
    if (isInRow(v)) {
      stage->swept.push_back({TileStep::Kind::Row, own_[v]});
      return;
    }
    own_[v] = rows_[v] >= 0 ? rows_[v] : newLocation(value.type);
    TileStep step{TileStep::Kind::Scalar, own_[v], value.index};
    if (value.form == Form::Load) {
      const bool index = kernel_.operands[value.index].role == KernelOperand::Role::Index;
      step.kind = index ? TileStep::Kind::Index : TileStep::Kind::Load;
      step.source = newView(value.index, level);
    } else if (value.form == Form::Apply) {
      step.kind = TileStep::Kind::Apply;
      step.function = findFunction(kernel_, value, ops_);
    } else if (value.form == Form::Gather) {
      step.kind = TileStep::Kind::Gather;
      step.number = kernel_.gatherNumber(v);
    }
    for (size_t i = 0; i < value.args.size(); ++i) {
      step.args[i] = level == Level::Swept ? value.args[i] : own_[value.args[i]];
    }
    steps(level, stage).push_back(step);
  }

  std::vector<TileStep>& steps(Level level, TileStage* stage) {
    return level == Level::Uniform ? plan_.uniform
           : level == Level::Kept  ? stage->kept
                                   : stage->swept;
  }

  // The location where a step of `level` reads a value.
  int readAt(int v, Level level, TileStage* stage) {
    if (level != Level::Swept || levels_[v] != Level::Kept) return own_[v];
    if (expanded_[v] < 0) {
      expanded_[v] = newLocation(kernel_.values[v].type);
      stage->kept.push_back({TileStep::Kind::Expand, expanded_[v], own_[v]});
    }
    return expanded_[v];
  }

  void addReduce(const KernelStage::Reduce& reduce, TileStage* stage) {
    const dtype type = kernel_.values[reduce.value].type,
                totalType = ir::totalType(reduce.op, type);
    const int op = static_cast<int>(reduce.op), t = static_cast<int>(type);
    FL_INTERNAL_CHECK(ops_.apply[op][t], opName(reduce.op), " does not reduce ", type);
    TileReduce planned{.combine = ops_.apply[op][t],
                       .functions = ops_.reductions[op][t],
                       .location = readAt(reduce.value, Level::Swept, stage),
                       .result = results_[reduce.index],
                       .partial = newLocation(type),
                       .init = reduceInit(reduce.op, type).bits(),
                       .total = results_[reduce.index],
                       .totalInit = reduceInit(reduce.op, totalType).bits()};
    if (totalType != type) {
      const int w = static_cast<int>(totalType);
      planned.total = newLocation(totalType);
      planned.widened = newLocation(totalType);
      planned.widen = ops_.cast[t][w];
      planned.add = ops_.apply[op][w];
      planned.round = ops_.cast[w][t];
    }
    stage->reduces.push_back(planned);
  }

  // An output may be the memory of an input, so a loaded value must not be read in place after the
  // first store of its tile: with several stores it is stored from a copy, and the last step writes
  // such an output at once only if nothing loaded is reduced or stored after it.
  void keepLoadsFromStores(std::vector<TileStep>* steps, const TileStage& stage) {
    bool isLoadReduced = false;
    for (TileStep& step : *steps) {
      const auto isTarget = [&](const auto& user) { return user.location == step.target; };
      const bool load = step.kind == TileStep::Kind::Load;
      if (load && std::ranges::any_of(stage.reduces, isTarget)) isLoadReduced = true;
      const auto store = std::ranges::find_if(stage.stores, isTarget);
      if (store == stage.stores.end()) continue;
      if (load && stage.stores.size() > 1) step.inPlace = false;
      if (step.kind == TileStep::Kind::Apply && (stage.sweep || kernel_.reduced == 0) &&
          !plan_.locations[step.target].row) {
        step.direct = store->view;
      }
    }
    if (!steps->empty()) steps->back().isLastToRead = !isLoadReduced;
  }

  const Kernel& kernel_;
  const TileOps& ops_;
  TilePlan& plan_;
  const std::vector<Level> levels_;
  std::vector<int> own_;       // location of each value, of swept ones in the present stage
  std::vector<int> expanded_;  // location of the copy for sweeps
  std::vector<int> rows_;      // location of the row of each value that is kept
  std::vector<int> results_;   // locations of the reductions' results
};

// Gives locations their memory: one that is no longer read hands its place to a later one of the
// same width, so that a long chain of ops stays in L1.
class Allocation {
 public:
  explicit Allocation(TilePlan* plan) : plan_(*plan), lastUse_(plan->locations.size(), -1) {}

  void run() {
    forEachStep([&](const TileStep& step, int position) { noteUses(step, position); },
                [&](const TileStage& stage, int position) { noteEnd(stage, position); });
    forEachStep([&](const TileStep& step, int position) { place(step, position); },
                [&](const TileStage&, int position) { releaseUpTo(position); });
    for (TileLocation& location : plan_.locations) {
      if (location.offset < 0) {  // totals and partials: written by no step
        location.offset = extend(location.width);
      }
    }
  }

 private:
  static constexpr int kForever = std::numeric_limits<int>::max();

  // Visits steps in order of execution, each at a position of its own, and the end of each stage.
  template <class Step, class End>
  void forEachStep(Step&& visit, End&& end) {
    int position = 0;
    for (const TileStep& step : plan_.uniform) visit(step, position++);
    for (const TileStage& stage : plan_.stages) {
      for (const TileStep& step : stage.kept) visit(step, position++);
      for (const TileStep& step : stage.swept) visit(step, position++);
      end(stage, position++);
    }
  }

  void use(int location, int position) {
    lastUse_[location] = std::max(lastUse_[location], position);
  }

  void noteUses(const TileStep& step, int position) {
    const bool uniform = position < static_cast<int>(plan_.uniform.size());
    use(step.target, uniform ? kForever : position);
    for (int arg : step.args) {
      if (arg >= 0) use(arg, position);
    }
    if (step.kind == TileStep::Kind::Expand) {
      expansions_.push_back({step.source, step.target});
    }
  }

  // What a sweep reads but does not compute must last until its end, as must what is stored.
  void noteEnd(const TileStage& stage, int position) {
    std::vector<bool> computed(plan_.locations.size(), false);
    for (const TileStep& step : stage.swept) computed[step.target] = true;
    for (const TileStep& step : stage.swept) {
      for (int arg : step.args) {
        if (arg >= 0 && !computed[arg]) use(arg, position);
      }
    }
    for (const TileReduce& reduce : stage.reduces) use(reduce.location, position);
    for (const TileStore& store : stage.stores) use(store.location, position);
    // An expanded copy may be the kept value itself.
    for (const auto& [kept, copy] : expansions_) use(kept, lastUse_[copy]);
  }

  void place(const TileStep& step, int position) {
    TileLocation& target = plan_.locations[step.target];
    if (target.row) return releaseUpTo(position);
    if (step.kind == TileStep::Kind::Apply) {
      for (int arg : step.args) {  // the result may replace an operand of its width
        if (arg >= 0 && lastUse_[arg] == position && plan_.locations[arg].width == target.width) {
          release(arg);
        }
      }
    }
    target.offset = take(target.width);
    live_.push_back(step.target);
    releaseUpTo(position);
  }

  void releaseUpTo(int position) {
    const std::vector<int> live = live_;
    for (int location : live) {
      if (lastUse_[location] <= position) release(location);
    }
  }

  // Locations that no step writes are never live here.
  void release(int location) {
    const auto found = std::find(live_.begin(), live_.end(), location);
    if (found != live_.end()) {
      live_.erase(found);
      free_.push_back(location);
    }
  }

  // The place used last: it is the likeliest to be in L1.
  int64_t take(int width) {
    const auto found = std::find_if(free_.rbegin(), free_.rend(), [&](int location) {
      return plan_.locations[location].width == width;
    });
    if (found == free_.rend()) return extend(width);
    const int64_t offset = plan_.locations[*found].offset;
    free_.erase(std::next(found).base());
    return offset;
  }

  int64_t extend(int width) {
    // A group more, for readers that start within a tile, and a few cache lines to keep tiles from
    // starting at the same offset within a page.
    const int64_t offset = plan_.scratchBytes;
    plan_.scratchBytes += (kTile + kTileGroup) * width + 5 * 64;
    return offset;
  }

  TilePlan& plan_;
  std::vector<int> lastUse_;  // position, by location
  std::vector<std::pair<int, int>> expansions_;
  std::vector<int> live_;
  std::vector<int> free_;
};

}  // namespace

TilePlan planTiles(const Kernel& kernel, const TileOps& ops, bool keepsRows) {
  verify(kernel);
  TilePlan plan;
  plan.kernel = kernel;
  Planner(kernel, ops, keepsRows, &plan).run();
  Allocation(&plan).run();
  return plan;
}

}  // namespace fl::tile
