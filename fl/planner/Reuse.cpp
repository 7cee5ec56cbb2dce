#include "fl/planner/Reuse.h"

#include <algorithm>
#include <limits>
#include <set>

#include "fl/kernel/KeptRows.h"
#include "fl/kernel/Strided.h"

namespace fl::planner {

bool mayFail(const ir::Step& step) {
  const auto isInside = [](int origin) { return origin == ir::kInside; };
  if (const auto* launch = std::get_if<ir::LaunchStep>(&step))
    return !std::ranges::all_of(launch->gathers, isInside);
  const auto& call = std::get<ir::LibraryStep>(step);
  const ir::Kind kind = ir::opKind(call.op);
  return (kind == ir::Kind::Index || kind == ir::Kind::Update) && !isInside(call.origin);
}

size_t bytesOfBuffer(const ir::Schedule& schedule, const ir::BufferRef& ref) {
  using enum ir::BufferRef::Space;
  if (ref.space == Temporary) return schedule.temporaries[ref.index].bytes;
  const ir::ValueType& type = ref.space == Parameter ? schedule.parameters[ref.index].type
                                                     : schedule.outputs[ref.index].type;
  return bytesOf(type.type, type.shape);
}

bool readsWhereItWrites(const ir::Schedule& schedule, const ir::LaunchStep& launch,
                        const ir::BufferRef& from, const ir::BufferRef& to) {
  using Form = ir::KernelValue::Form;
  const ir::Kernel& kernel = schedule.kernels[launch.kernel];
  const std::vector<ir::LaunchOperand>& all = launch.operands;
  const auto target = std::ranges::find(all, to, &ir::LaunchOperand::buffer) - all.begin();
  std::vector<bool> isReadLater(all.size(), false);  // behind the stage that writes
  const auto writes = [&](const ir::KernelStage& stage) {
    return std::ranges::count(stage.stores, target, &ir::KernelStage::Store::operand) > 0;
  };
  size_t stage = std::ranges::find_if(kernel.stages, writes) - kernel.stages.begin();
  const bool isWhole = kernel.reduced == 0 || kernel.stages[stage].sweep;
  if (!isWhole || crossesMemory(kernel)) return false;
  const ir::StageValues of = kernel.reduced ? ir::valuesOfStages(kernel) : ir::StageValues();
  while (++stage < of.needed.size())
    for (int number : of.needed[stage])
      if (const ir::KernelValue& value = kernel.values[number];
          value.form == Form::Load || value.form == Form::Gather)
        isReadLater[value.index] = true;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].buffer != from) continue;
    if (isReadLater[i] || all[i].offset != all[target].offset ||
        all[i].strides != all[target].strides ||
        getTypeSize(kernel.operands[i].type) != getTypeSize(kernel.operands[target].type))
      return false;
  }
  return true;
}

bool isReadBeside(const ir::Schedule& schedule, int launch, const ir::BufferRef& buffer) {
  const auto* step = std::get_if<ir::LaunchStep>(&schedule.steps[launch]);
  return step && step->epilogue &&
         std::ranges::count(stepBuffers(schedule, schedule.steps[launch - 1]).reads, buffer) > 0;
}

namespace {

using Space = ir::BufferRef::Space;

// A call that looks indices up in memory; null for other steps.
const ir::LibraryStep* asLookup(const ir::Step& step) {
  const auto* call = std::get_if<ir::LibraryStep>(&step);
  using enum ir::Op;
  const bool looks = call && (call->op == Gather || call->op == Scatter || call->op == ScatterAdd);
  return looks ? call : nullptr;
}

constexpr int kNever = std::numeric_limits<int>::max();

// Whether an operand has every element of its buffer, in order, each perhaps many times.
bool isWhole(const ir::Schedule& schedule, const ir::LaunchStep& launch, size_t operand,
             dtype type) {
  const auto& [buffer, offset, strides] = launch.operands[operand];
  ir::StridedLayout layout{offset, {}};
  std::vector<Dim> extents;
  for (size_t axis = 0; axis < strides.size(); ++axis) {
    if (strides[axis] == 0) continue;
    layout.strides.push_back(strides[axis]);
    extents.push_back(launch.extents[axis]);
  }
  const Shape shape(extents);
  return buffer && ir::isContiguous(layout, shape) &&
         bytesOf(type, shape) == bytesOfBuffer(schedule, *buffer);
}

// Whether a launch looks up all elements of its indices, rather than those of a slice.
bool looksUpAll(const ir::Schedule& schedule, const ir::LaunchStep& launch) {
  using Form = ir::KernelValue::Form;
  const ir::Kernel& kernel = schedule.kernels[launch.kernel];
  std::vector<bool> isIndex(kernel.values.size(), false);  // or what one is computed of
  for (size_t i = kernel.values.size(); i-- > 0;) {
    const ir::KernelValue& value = kernel.values[i];
    if (value.form == Form::Gather) isIndex[value.args[1]] = true;
    if (!isIndex[i]) continue;
    for (const int arg : value.args) isIndex[arg] = true;
    if (value.form == Form::Gather || value.form == Form::Total ||
        (value.form == Form::Load &&
         !isWhole(schedule, launch, value.index, kernel.operands[value.index].type)))
      return false;
  }
  return true;
}

class Reuse {
 public:
  Reuse(const ir::Schedule& schedule, bool checksEarly)
      : schedule_(schedule),
        checksEarly_(checksEarly),
        looksUpAgain_(looksUpAgain(schedule)),
        lastReader_(schedule.parameters.size(), -1),
        lastWriter_(schedule.temporaries.size(), -1),
        writers_(schedule.outputs.size()),
        safeFrom_(schedule.steps.size() + 1, 0) {
    for (int i = 0; i < static_cast<int>(schedule.steps.size()); ++i) noteStep(i);
    for (size_t i = schedule.steps.size(); i-- > 0;)
      safeFrom_[i] = std::max(safeFrom_[i], safeFrom_[i + 1]);
    for (const auto& [type, shared, source, over] : schedule.outputs)
      if (shared && source.space == Space::Parameter) lastReader_[source.index] = kNever;
  }

  std::vector<int> of(int output) const {
    const auto& [type, shared, source, over] = schedule_.outputs[output];
    const std::vector<int>& writers = writers_[output];
    if (shared || writers.empty() || !mayBeFirst(writers[0])) return {};
    if (over >= 0) return isFree(over, writers, 0) ? std::vector{over} : std::vector<int>();
    std::vector<int> found;
    for (const ir::BufferRef& ref : stepBuffers(schedule_, schedule_.steps[writers[0]]).reads) {
      if (ref.space == Space::Parameter && isFree(ref.index, writers, 1) &&
          bytesOfBuffer(schedule_, ref) == bytesOfBuffer(schedule_, {Space::Output, output}) &&
          isReadFirst(ref, output) && std::ranges::count(found, ref.index) == 0)
        found.push_back(ref.index);
    }
    std::ranges::sort(found);
    return found;
  }

  EarlyChecks checks() const {
    EarlyChecks checks;
    int first = kNever;
    for (int output = 0; output < std::ssize(writers_); ++output)
      if (!of(output).empty()) first = std::min(first, writers_[output][0]);
    if (first == kNever) return checks;
    for (int i = firstToCheck(first); i < std::ssize(schedule_.steps); ++i)
      if (asLookup(schedule_.steps[i]) && !looksUpAgain_[i]) checks.calls.push_back(i);
    checks.step = checks.calls.empty() ? -1 : beginOf(first);
    return checks;
  }

 private:
  void noteStep(int step) {
    const ir::Step& noted = schedule_.steps[step];
    const auto* call = std::get_if<ir::LibraryStep>(&noted);
    // GPUs have the host sort, in memory that it takes then.
    const bool takesMemory = call && call->op == ir::Op::Argsort && !checksEarly_;
    if ((mayFail(noted) && !looksUpAgain_[step]) || takesMemory) safeFrom_[step] = readyAt(step);
    const ir::StepBuffers buffers = stepBuffers(schedule_, noted);
    for (const ir::BufferRef& ref : buffers.reads)
      if (ref.space == Space::Parameter) lastReader_[ref.index] = step;
    for (const ir::BufferRef& ref : buffers.writes) {
      if (ref.space == Space::Output) writers_[ref.index].push_back(step);
      if (ref.space == Space::Temporary) lastWriter_[ref.index] = step;
    }
  }

  // From which step on the indices that a step looks up are what it will find.
  int readyAt(int step) const {
    const ir::LibraryStep* call = asLookup(schedule_.steps[step]);
    if (!call || !checksEarly_) return kNever;
    const auto& [space, index] = call->operands[1].buffer;
    if (space == Space::Output) return writers_[index].empty() ? 0 : writers_[index].back() + 1;
    return space == Space::Temporary ? lastWriter_[index] + 1 : 0;
  }

  // A scatter checks its own.
  int firstToCheck(int step) const {
    const ir::LibraryStep* call = asLookup(schedule_.steps[step]);
    return step + (call && call->op != ir::Op::Gather && checksEarly_);
  }

  // An epilogue runs with its call.
  int beginOf(int step) const {
    const auto* launch = std::get_if<ir::LaunchStep>(&schedule_.steps[step]);
    return step - (launch && launch->epilogue);
  }

  // Whether a step may be the first that writes over a parameter: none may fail then.
  bool mayBeFirst(int step) const { return safeFrom_[firstToCheck(step)] <= beginOf(step); }

  // Whether what an output's first writer reads of a parameter may be replaced as it reads it.
  bool isReadFirst(const ir::BufferRef& parameter, int output) const {
    const ir::Step& step = schedule_.steps[writers_[output][0]];
    if (const auto* map = std::get_if<ir::LaunchStep>(&step))
      return writers_[output].size() == 1 &&
             readsWhereItWrites(schedule_, *map, parameter, {Space::Output, output});
    const ir::LibraryStep* call = asLookup(step);
    return call && call->op != ir::Op::Gather && call->operands[0].buffer == parameter &&
           std::ranges::count(call->operands, parameter, &ir::BufferPlace::buffer) == 1;
  }

  // Whether nobody reads it when an output is written, but for what the first of `writers` reads
  // before if `first` is 1.
  bool isFree(int parameter, const std::vector<int>& writers, int first) const {
    const ir::BufferRef ref{Space::Parameter, parameter};
    const auto isBeside = [&](int step) { return isReadBeside(schedule_, step, ref); };
    return lastReader_[parameter] < writers[0] + first && std::ranges::none_of(writers, isBeside);
  }

  const ir::Schedule& schedule_;
  const bool checksEarly_;
  const std::vector<bool> looksUpAgain_;   // by step
  std::vector<int> lastReader_;            // by parameter; of what an output shares never
  std::vector<int> lastWriter_;            // so far, by temporary
  std::vector<std::vector<int>> writers_;  // by output
  // Of each step: where indices are checked so that none from it on fails, at the earliest.
  std::vector<int> safeFrom_;
};

}  // namespace

std::vector<bool> looksUpAgain(const ir::Schedule& schedule) {
  std::set<int> known = {ir::kInside};  // or Node::origin
  std::vector<bool> again;
  for (const ir::Step& step : schedule.steps) {
    const auto* launch = std::get_if<ir::LaunchStep>(&step);
    const ir::LibraryStep* call = asLookup(step);
    const std::vector<int> origins = launch ? launch->gathers
                                     : call ? std::vector{call->origin}
                                            : std::vector<int>();
    const auto isKnown = [&](int origin) { return known.contains(origin); };
    again.push_back(!origins.empty() && std::ranges::all_of(origins, isKnown));
    if (!launch || looksUpAll(schedule, *launch)) known.insert(origins.begin(), origins.end());
    known.erase(-1);
  }
  return again;
}

std::vector<std::vector<int>> reusableParameters(const ir::Schedule& schedule, bool checksEarly) {
  const Reuse reuse(schedule, checksEarly);
  std::vector<std::vector<int>> parameters;
  for (int output = 0; output < static_cast<int>(schedule.outputs.size()); ++output)
    parameters.push_back(reuse.of(output));
  return parameters;
}

EarlyChecks earlyChecks(const ir::Schedule& schedule) { return Reuse(schedule, true).checks(); }

}  // namespace fl::planner
