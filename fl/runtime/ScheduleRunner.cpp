#include "fl/runtime/ScheduleRunner.h"

#include <algorithm>

#include "fl/base/Error.h"
#include "fl/ir/Interpreter.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/FloatEnvironment.h"
#include "fl/runtime/StreamingCopy.h"
#include "fl/runtime/ThreadPool.h"

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

namespace {

constexpr int64_t kCopyBytes = 1 << 18;  // worth a thread

// Of a buffer.
struct Bytes {
  int64_t begin;
  int64_t end;
};

// The first element of an operand.
int64_t offsetOf(const ir::LaunchOperand& operand, std::span<const uint64_t> numberBits) {
  int64_t offset = operand.offset.constant;
  for (const ir::ElementOffset::Term& term : operand.offset.terms) {
    offset += static_cast<int64_t>(numberBits[term.parameter]) * term.factor;
  }
  return offset;
}

// What lies around the runs of memory that an operand covers, if these are long and follow one
// another; everything if not.
std::vector<Bytes> bytesAround(const ir::LaunchStep& step, const ir::LaunchOperand& operand,
                               int64_t offset, int64_t size, int64_t bytes) {
  constexpr int64_t kLongRun = 1 << 12;
  size_t axis = 0;
  Dim run = 1, runs = 1;
  for (; axis < step.extents.size() && operand.strides[axis] == run; ++axis) {
    run *= step.extents[axis];
  }
  Dim reach = run;
  for (size_t outer = axis; outer < step.extents.size(); ++outer) {
    if (operand.strides[outer] < reach) {
      return {{0, bytes}};
    }
    reach = operand.strides[outer] * step.extents[outer];
    runs *= step.extents[outer];
  }
  if (run * size < kLongRun) {
    return {{0, bytes}};
  }
  std::vector<Bytes> around;
  int64_t end = 0;
  for (Dim i = 0; i < runs; ++i) {
    int64_t begin = offset;
    Dim rest = i;
    for (size_t outer = axis; outer < step.extents.size(); ++outer) {
      begin += rest % step.extents[outer] * operand.strides[outer];
      rest /= step.extents[outer];
    }
    around.push_back({end, begin * size});
    end = (begin + run) * size;
  }
  around.push_back({end, bytes});
  return around;
}

// Of no more than is worth a thread.
std::vector<Bytes> piecesOf(const std::vector<Bytes>& all) {
  std::vector<Bytes> pieces;
  for (const Bytes& each : all) {
    for (int64_t begin = each.begin; begin < each.end; begin += kCopyBytes) {
      pieces.push_back({begin, std::min(begin + kCopyBytes, each.end)});
    }
  }
  return pieces;
}

using ir::BufferRef;

// Whether a step may find an index out of range or run out of memory. Other steps work in what the
// run has before the first of them, but for some bytes.
bool mayFail(const ir::Schedule& schedule, const ir::Step& step) {
  if (const auto* launch = std::get_if<ir::LaunchStep>(&step)) {
    return schedule.kernels[launch->kernel].gatherCount() > 0;
  }
  const ir::Op op = std::get<ir::LibraryStep>(step).op;
  const ir::Kind kind = opKind(op);
  return kind == ir::Kind::Index || kind == ir::Kind::Update || op == ir::Op::Argsort;
}

// Whether an output that is over a parameter may be in its buffer: once a step has written there,
// no step reads the parameter, which no output shares, and none fails.
bool mayTake(const ir::Schedule& schedule, size_t output) {
  const BufferRef own{BufferRef::Space::Output, static_cast<int>(output)};
  const BufferRef from{BufferRef::Space::Parameter, schedule.outputs[output].over};
  const auto has = [](const std::vector<BufferRef>& refs, const BufferRef& ref) {
    return std::find(refs.begin(), refs.end(), ref) != refs.end();
  };
  bool written = false;
  const auto stops = [&](const ir::Step& step) {
    const ir::StepBuffers buffers = stepBuffers(schedule, step);
    written = written || has(buffers.writes, own);
    return written && (mayFail(schedule, step) || has(buffers.reads, from));
  };
  return std::none_of(schedule.steps.begin(), schedule.steps.end(), stops) &&
         std::none_of(
             schedule.outputs.begin(), schedule.outputs.end(),
             [&](const ir::ScheduleOutput& other) { return other.shared && other.source == from; });
}

}  // namespace

ScheduleRunner::ScheduleRunner(ir::Schedule schedule) : schedule_(std::move(schedule)) {
  for (size_t i = 0; i < schedule_.outputs.size(); ++i) {
    over_.push_back(schedule_.outputs[i].over >= 0 ? examine(i) : Over());
  }
}

ScheduleRunner::Over ScheduleRunner::examine(size_t output) const {
  const BufferRef own{BufferRef::Space::Output, static_cast<int>(output)};
  Over over{.mayTake = mayTake(schedule_, output)};
  int uses = 0;
  for (const ir::Step& step : schedule_.steps) {
    const ir::StepBuffers buffers = stepBuffers(schedule_, step);
    uses += static_cast<int>(std::ranges::count(buffers.reads, own));
    uses += static_cast<int>(std::ranges::count(buffers.writes, own));
    if (const auto* launch = std::get_if<ir::LaunchStep>(&step)) {
      const auto found = std::ranges::find(launch->operands, own, &ir::LaunchOperand::buffer);
      if (found != launch->operands.end()) {
        over.step = launch;
        over.operand = found - launch->operands.begin();
      }
    }
  }
  if (uses != 1) {
    over.step = nullptr;
  }
  return over;
}

// A new buffer with those elements of an output's parameter that no step overwrites.
MemoryBlockPtr ScheduleRunner::copyOf(const MemoryBlock& block, size_t output,
                                      const Frame& frame) const {
  const ir::ValueType& type = schedule_.outputs[output].type;
  const auto bytes = static_cast<int64_t>(bytesOf(type.type, type.shape));
  auto copy = std::make_shared<Buffer>(bytes);
  const bool streams = isStreamed(bytes);
  std::vector<Bytes> wanted = {{0, bytes}};
  if (const Over& over = over_[output]; over.step && bytes > kCopyBytes) {
    const ir::LaunchOperand& operand = over.step->operands[over.operand];
    wanted = bytesAround(*over.step, operand, offsetOf(operand, frame.numberBits),
                         static_cast<int64_t>(getTypeSize(type.type)), bytes);
  }
  const std::vector<Bytes> pieces = piecesOf(wanted);
  threadPool().parallelFor(static_cast<int64_t>(pieces.size()), 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const auto [begin, end] = pieces[i];
      copyRun(static_cast<char*>(copy->data()) + begin,
              static_cast<const char*>(block.data()) + begin, end - begin, streams);
    }
    finishCopies(streams);
  });
  for (const auto& [begin, end] : pieces) {
    counters().bytesMoved += 2 * (end - begin);
  }
  return copy;
}

// Null for outputs that share a buffer.
LoadedSchedule::Outputs ScheduleRunner::placeOutputs(const Frame& frame,
                                                     std::span<const MemoryBlockPtr> buffers,
                                                     std::span<const bool> spare) const {
  Outputs outputs;
  outputs.reserve(schedule_.outputs.size());
  for (size_t i = 0; i < schedule_.outputs.size(); ++i) {
    const ir::ScheduleOutput& output = schedule_.outputs[i];
    if (output.over < 0) {
      const size_t bytes = bytesOf(output.type.type, output.type.shape);
      outputs.push_back(output.shared ? nullptr : std::make_shared<Buffer>(bytes));
      continue;
    }
    const MemoryBlockPtr& from = buffers[output.over];
    const bool isTaken = std::find(outputs.begin(), outputs.end(), from) != outputs.end();
    const bool takes = over_[i].mayTake && !spare.empty() && spare[output.over] && !isTaken;
    outputs.push_back(takes ? from : copyOf(*from, i, frame));
  }
  return outputs;
}

LoadedSchedule::Outputs ScheduleRunner::run(std::span<const MemoryBlockPtr> buffers,
                                            std::span<const Number> numbers,
                                            std::span<const bool> spare) const {
  Frame frame;
  frame.numberBits.resize(numbers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    frame.numberBits[i] = numbers[i].bits();
    frame.parameters.push_back(schedule_.parameters[i].number
                                   ? static_cast<void*>(&frame.numberBits[i])
                                   : buffers[i]->data());
  }
  Outputs outputs = placeOutputs(frame, buffers, spare);
  for (const MemoryBlockPtr& output : outputs) {
    frame.outputs.push_back(output ? output->data() : nullptr);
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
    const int64_t offset = offsetOf(operand, frame.numberBits);
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
