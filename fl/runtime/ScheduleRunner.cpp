#include "fl/runtime/ScheduleRunner.h"

#include "fl/base/Error.h"
#include "fl/ir/Interpreter.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/FloatEnvironment.h"

namespace fl::runtime {

Counters& counters() {
  static auto& instance = *new Counters();
  return instance;
}

void* ScheduleRunner::Frame::address(const ir::BufferRef& ref, const ir::Schedule& schedule) const {
  switch (ref.space) {
    case ir::BufferRef::Space::Parameter:
      return parameters[ref.index];
    case ir::BufferRef::Space::Output:
      return outputs[ref.index];
    case ir::BufferRef::Space::Temporary:
      return arena + schedule.temporaries[ref.index].offset;
  }
  __builtin_unreachable();
}

const std::vector<DeviceKernelPtr>& ScheduleRunner::kernels() const {
  static const auto& none = *new std::vector<DeviceKernelPtr>();
  return none;
}

LoadedSchedule::Outputs ScheduleRunner::run(std::span<const MemoryBlockPtr> buffers,
                                            std::span<const Number> numbers) const {
  Frame frame;
  frame.numberBits.resize(numbers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    frame.numberBits[i] = numbers[i].bits();
    frame.parameters.push_back(schedule_.parameters[i].number
                                   ? static_cast<void*>(&frame.numberBits[i])
                                   : buffers[i]->data());
  }
  Outputs outputs;
  outputs.reserve(schedule_.outputs.size());
  for (const ir::ScheduleOutput& output : schedule_.outputs) {
    const size_t bytes = bytesOf(output.type.type, output.type.shape);
    outputs.push_back(output.shared ? nullptr : std::make_shared<Buffer>(bytes));
    frame.outputs.push_back(output.shared ? nullptr : outputs.back()->data());
  }
  MemoryBlockPtr arena;
  if (schedule_.arenaBytes > 0) {
    arena = std::make_shared<Buffer>(schedule_.arenaBytes);
    frame.arena = static_cast<char*>(arena->data());
  }
  {
    const FloatEnvironment environment;
    runSteps(frame);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const ir::ScheduleOutput& output = schedule_.outputs[i];
    if (output.shared) {
      outputs[i] = output.source.space == ir::BufferRef::Space::Parameter
                       ? buffers[output.source.index]
                       : outputs[output.source.index];
    }
  }
  return outputs;
}

ScheduleRunner::LaunchData ScheduleRunner::launchData(const ir::LaunchStep& launch,
                                                      const Frame& frame) const {
  const ir::Kernel& kernel = schedule_.kernels[launch.kernel];
  LaunchData result;
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const ir::LaunchOperand& operand = launch.operands[i];
    int64_t offset = operand.offset.constant;
    for (const ir::ElementOffset::Term& term : operand.offset.terms) {
      offset += static_cast<int64_t>(frame.numberBits[term.parameter]) * term.factor;
    }
    result.data[i] = operand.buffer
                         ? static_cast<char*>(frame.address(*operand.buffer, schedule_)) +
                               offset * static_cast<int64_t>(getTypeSize(kernel.operands[i].type))
                         : reinterpret_cast<void*>(offset);
  }
  for (size_t i = 0; i < launch.numbers.size(); ++i) {
    result.scalars[i] = frame.numberBits[launch.numbers[i]];
  }
  return result;
}

void ScheduleRunner::interpretCall(const ir::LibraryStep& call, const Frame& frame) const {
  std::vector<ir::HostOperand> operands;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    operands.push_back({&call.operandTypes[i], frame.address(call.operands[i], schedule_)});
  }
  withOrigin(call, [&] {
    ir::interpret(call.op, operands, call.attrs, call.resultType,
                  frame.address(call.result, schedule_));
  });
}

}  // namespace fl::runtime
