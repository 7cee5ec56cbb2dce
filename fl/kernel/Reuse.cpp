#include "fl/kernel/Reuse.h"

#include <algorithm>

#include "fl/base/Shape.h"

namespace fl::ir {
namespace {

using Space = BufferRef::Space;

// Other steps work in what the run has before the first of them, but for some bytes.
bool mayFail(const Schedule& schedule, const Step& step) {
  if (const auto* launch = std::get_if<LaunchStep>(&step)) {
    return schedule.kernels[launch->kernel].gatherCount() > 0;
  }
  const Op op = std::get<LibraryStep>(step).op;
  return opKind(op) == Kind::Index || opKind(op) == Kind::Update || op == Op::Argsort;
}

class Reuse {
 public:
  explicit Reuse(const Schedule& schedule)
      : schedule_(schedule),
        lastReader_(schedule.parameters.size(), -1),
        shared_(schedule.parameters.size(), false),
        writers_(schedule.outputs.size()) {
    for (int i = 0; i < static_cast<int>(schedule.steps.size()); ++i) {
      noteStep(i);
    }
    for (const ScheduleOutput& output : schedule.outputs) {
      if (output.shared && output.source.space == Space::Parameter) {
        shared_[output.source.index] = true;
      }
    }
  }

  std::vector<int> of(int output) const {
    const ScheduleOutput& described = schedule_.outputs[output];
    const std::vector<int>& writers = writers_[output];
    if (described.shared || writers.empty() || lastFailing_ >= writers[0]) {
      return {};
    }
    if (described.over >= 0) {
      return isFree(described.over, writers[0]) ? std::vector{described.over} : std::vector<int>{};
    }
    const auto* map = std::get_if<LaunchStep>(&schedule_.steps[writers[0]]);
    if (writers.size() > 1 || !map || schedule_.kernels[map->kernel].reduced != 0 ||
        crossesMemory(schedule_.kernels[map->kernel])) {
      return {};
    }
    std::vector<int> found;
    for (int p = 0; p < static_cast<int>(schedule_.parameters.size()); ++p) {
      if (isFree(p, writers[0] + 1) && readsWhereItWrites(*map, p, output)) {
        found.push_back(p);
      }
    }
    return found;
  }

 private:
  void noteStep(int step) {
    const StepBuffers buffers = stepBuffers(schedule_, schedule_.steps[step]);
    for (const BufferRef& ref : buffers.reads) {
      if (ref.space == Space::Parameter) {
        lastReader_[ref.index] = step;
      }
    }
    for (const BufferRef& ref : buffers.writes) {
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

  // It reads the parameter, which has the output's size, and all of it where it writes the output.
  bool readsWhereItWrites(const LaunchStep& map, int parameter, int output) const {
    const ValueType& from = schedule_.parameters[parameter].type;
    const ValueType& to = schedule_.outputs[output].type;
    const std::vector<KernelOperand>& described = schedule_.kernels[map.kernel].operands;
    const auto target = std::ranges::find(
        map.operands, BufferRef{Space::Output, output},
        [](const LaunchOperand& operand) { return operand.buffer.value_or(BufferRef()); });
    const size_t size = getTypeSize(to.type);
    bool reads = false, fits = bytesOf(from.type, from.shape) == bytesOf(to.type, to.shape);
    for (size_t i = 0; i < map.operands.size(); ++i) {
      const LaunchOperand& operand = map.operands[i];
      if (operand.buffer == BufferRef{Space::Parameter, parameter}) {
        reads = true;
        fits = fits && getTypeSize(described[i].type) == size && operand.offset == target->offset &&
               operand.strides == target->strides;
      }
    }
    return reads && fits;
  }

  const Schedule& schedule_;
  std::vector<int> lastReader_;            // by parameter
  std::vector<bool> shared_;               // by parameter: with an output
  std::vector<std::vector<int>> writers_;  // by output
  int lastFailing_ = -1;
};

}  // namespace

std::vector<std::vector<int>> reusableParameters(const Schedule& schedule) {
  const Reuse reuse(schedule);
  std::vector<std::vector<int>> parameters;
  for (int output = 0; output < static_cast<int>(schedule.outputs.size()); ++output) {
    parameters.push_back(reuse.of(output));
  }
  return parameters;
}

}  // namespace fl::ir
