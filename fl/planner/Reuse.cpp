#include "fl/planner/Reuse.h"

#include <algorithm>

namespace fl::planner {

bool mayFail(const ir::Schedule& schedule, const ir::Step& step) {
  if (const auto* launch = std::get_if<ir::LaunchStep>(&step)) {
    return schedule.kernels[launch->kernel].gatherCount() > 0;
  }
  const ir::Op op = std::get<ir::LibraryStep>(step).op;
  return ir::opKind(op) == ir::Kind::Index || ir::opKind(op) == ir::Kind::Update ||
         op == ir::Op::Argsort;
}

namespace {

using Space = ir::BufferRef::Space;

class Reuse {
 public:
  explicit Reuse(const ir::Schedule& schedule)
      : schedule_(schedule),
        lastReader_(schedule.parameters.size(), -1),
        shared_(schedule.parameters.size(), false),
        writers_(schedule.outputs.size()) {
    for (int i = 0; i < static_cast<int>(schedule.steps.size()); ++i) {
      noteStep(i);
    }
    for (const ir::ScheduleOutput& output : schedule.outputs) {
      if (output.shared && output.source.space == Space::Parameter) {
        shared_[output.source.index] = true;
      }
    }
  }

  std::vector<int> of(int output) const {
    const ir::ScheduleOutput& described = schedule_.outputs[output];
    const std::vector<int>& writers = writers_[output];
    if (described.shared || writers.empty() || lastFailing_ >= writers[0]) {
      return {};
    }
    if (described.over >= 0) {
      const bool free =
          isFree(described.over, writers[0]) && !isReadBeside(described.over, writers);
      return free ? std::vector{described.over} : std::vector<int>{};
    }
    const auto* map = std::get_if<ir::LaunchStep>(&schedule_.steps[writers[0]]);
    if (writers.size() > 1 || !map || schedule_.kernels[map->kernel].reduced != 0 ||
        crossesMemory(schedule_.kernels[map->kernel])) {
      return {};
    }
    std::vector<int> found;
    for (const ir::BufferRef& ref : stepBuffers(schedule_, *map).reads) {
      if (ref.space == Space::Parameter && isFree(ref.index, writers[0] + 1) &&
          readsWhereItWrites(*map, ref.index, output) && !isReadBeside(ref.index, writers) &&
          std::ranges::count(found, ref.index) == 0) {
        found.push_back(ref.index);
      }
    }
    return found;
  }

 private:
  void noteStep(int step) {
    const ir::StepBuffers buffers = stepBuffers(schedule_, schedule_.steps[step]);
    for (const ir::BufferRef& ref : buffers.reads) {
      if (ref.space == Space::Parameter) {
        lastReader_[ref.index] = step;
      }
    }
    for (const ir::BufferRef& ref : buffers.writes) {
      if (ref.space == Space::Output) {
        writers_[ref.index].push_back(step);
      }
    }
    if (mayFail(schedule_, schedule_.steps[step])) {
      lastFailing_ = step;
    }
  }

  // From a step on nobody reads it.
  bool isFree(int parameter, int step) const {
    return lastReader_[parameter] < step && !shared_[parameter];
  }

  // One of the steps is the epilogue of a call that reads the parameter meanwhile.
  bool isReadBeside(int parameter, const std::vector<int>& steps) const {
    return std::ranges::any_of(steps, [&](int step) {
      const auto* launch = std::get_if<ir::LaunchStep>(&schedule_.steps[step]);
      return launch && launch->epilogue &&
             std::ranges::count(stepBuffers(schedule_, schedule_.steps[step - 1]).reads,
                                ir::BufferRef{Space::Parameter, parameter}) > 0;
    });
  }

  // Both have one size, and all that the map reads of the parameter it reads where it writes.
  bool readsWhereItWrites(const ir::LaunchStep& map, int parameter, int output) const {
    const ir::ValueType& from = schedule_.parameters[parameter].type;
    const ir::ValueType& to = schedule_.outputs[output].type;
    const std::vector<ir::KernelOperand>& described = schedule_.kernels[map.kernel].operands;
    const auto target = std::ranges::find(
        map.operands, ir::BufferRef{Space::Output, output},
        [](const ir::LaunchOperand& operand) { return operand.buffer.value_or(ir::BufferRef()); });
    bool fits = bytesOf(from.type, from.shape) == bytesOf(to.type, to.shape);
    for (size_t i = 0; i < map.operands.size(); ++i) {
      const ir::LaunchOperand& operand = map.operands[i];
      if (operand.buffer == ir::BufferRef{Space::Parameter, parameter}) {
        fits = fits && getTypeSize(described[i].type) == getTypeSize(to.type) &&
               operand.offset == target->offset && operand.strides == target->strides;
      }
    }
    return fits;
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
