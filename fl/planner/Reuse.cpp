#include "fl/planner/Reuse.h"

#include <algorithm>

#include "fl/kernel/KeptRows.h"

namespace fl::planner {

bool mayFail(const ir::Schedule& schedule, const ir::Step& step) {
  if (const auto* launch = std::get_if<ir::LaunchStep>(&step)) {
    return schedule.kernels[launch->kernel].gatherCount() > 0;
  }
  const ir::Op op = std::get<ir::LibraryStep>(step).op;
  return ir::opKind(op) == ir::Kind::Index || ir::opKind(op) == ir::Kind::Update ||
         op == ir::Op::Argsort;
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
  while (++stage < of.needed.size()) {
    for (int number : of.needed[stage]) {
      const ir::KernelValue& value = kernel.values[number];
      if (value.form == Form::Load || value.form == Form::Gather) isReadLater[value.index] = true;
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].buffer != from) continue;
    if (isReadLater[i] || all[i].offset != all[target].offset ||
        all[i].strides != all[target].strides ||
        getTypeSize(kernel.operands[i].type) != getTypeSize(kernel.operands[target].type)) {
      return false;
    }
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

size_t bytesOf(const ir::ValueType& value) { return fl::bytesOf(value.type, value.shape); }

class Reuse {
 public:
  explicit Reuse(const ir::Schedule& schedule)
      : schedule_(schedule),
        lastReader_(schedule.parameters.size(), -1),
        shared_(schedule.parameters.size(), false),
        writers_(schedule.outputs.size()) {
    for (int i = 0; i < static_cast<int>(schedule.steps.size()); ++i) noteStep(i);
    for (const ir::ScheduleOutput& output : schedule.outputs) {
      if (output.shared && output.source.space == Space::Parameter) {
        shared_[output.source.index] = true;
      }
    }
  }

  std::vector<int> of(int output) const {
    const ir::ScheduleOutput& described = schedule_.outputs[output];
    const std::vector<int>& writers = writers_[output];
    if (described.shared || writers.empty() || lastFailing_ >= writers[0]) return {};
    if (described.over >= 0) {
      const bool free =
          isFree(described.over, writers[0]) && !isReadBeside(described.over, writers);
      return free ? std::vector{described.over} : std::vector<int>{};
    }
    const auto* map = std::get_if<ir::LaunchStep>(&schedule_.steps[writers[0]]);
    if (writers.size() > 1 || !map) return {};
    std::vector<int> found;
    for (const ir::BufferRef& ref : stepBuffers(schedule_, *map).reads) {
      if (ref.space == Space::Parameter && isFree(ref.index, writers[0] + 1) &&
          bytesOf(schedule_.parameters[ref.index].type) == bytesOf(described.type) &&
          readsWhereItWrites(schedule_, *map, ref, {Space::Output, output}) &&
          !isReadBeside(ref.index, writers) && std::ranges::count(found, ref.index) == 0) {
        found.push_back(ref.index);
      }
    }
    std::ranges::sort(found);
    return found;
  }

 private:
  void noteStep(int step) {
    const ir::StepBuffers buffers = stepBuffers(schedule_, schedule_.steps[step]);
    for (const ir::BufferRef& ref : buffers.reads) {
      if (ref.space == Space::Parameter) lastReader_[ref.index] = step;
    }
    for (const ir::BufferRef& ref : buffers.writes) {
      if (ref.space == Space::Output) writers_[ref.index].push_back(step);
    }
    if (mayFail(schedule_, schedule_.steps[step])) lastFailing_ = step;
  }

  // From a step on nobody reads it.
  bool isFree(int parameter, int step) const {
    return lastReader_[parameter] < step && !shared_[parameter];
  }

  bool isReadBeside(int parameter, const std::vector<int>& steps) const {
    return std::ranges::any_of(steps, [&](int step) {
      return planner::isReadBeside(schedule_, step, {Space::Parameter, parameter});
    });
  }

  const ir::Schedule& schedule_;
  std::vector<int> lastReader_;            // by parameter
  std::vector<bool> shared_;               // by parameter: with an output
  std::vector<std::vector<int>> writers_;  // by output
  int lastFailing_ = -1;
};

}  // namespace

std::vector<std::vector<int>> reusableParameters(const ir::Schedule& schedule) {
  const Reuse reuse(schedule);
  std::vector<std::vector<int>> parameters;
  for (int output = 0; output < static_cast<int>(schedule.outputs.size()); ++output) {
    parameters.push_back(reuse.of(output));
  }
  return parameters;
}

}  // namespace fl::planner
