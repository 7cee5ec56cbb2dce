#include "fl/runtime/ScheduleRunner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "fl/base/Error.h"
#include "fl/base/FloatEnvironment.h"
#include "fl/ir/Interpreter.h"
#include "fl/planner/Memory.h"
#include "fl/planner/Planner.h"
#include "fl/planner/Reuse.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/SystemMemory.h"

namespace fl::runtime {

using ir::BufferRef;

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
    case ir::BufferRef::Space::Temporary: {
      const ir::Temporary& temporary = schedule.temporaries[ref.index];
      return (temporary.onHost ? hostArena : arena) + temporary.offset;
    }
  }
  __builtin_unreachable();
}

int64_t ScheduleRunner::Frame::elementAt(const ir::ElementOffset& offset) const {
  int64_t element = offset.constant;
  for (const ir::ElementOffset::Term& term : offset.terms)
    element += static_cast<int64_t>(numberBits[term.parameter]) * term.factor;
  return element;
}

void* ScheduleRunner::Frame::address(const ir::BufferRef& ref, const ir::ElementOffset& offset,
                                     dtype type, const ir::Schedule& schedule) const {
  return static_cast<char*>(address(ref, schedule)) +
         elementAt(offset) * static_cast<int64_t>(getTypeSize(type));
}

const MemoryBlock* ScheduleRunner::Frame::constant(const ir::BufferPlace& place) const {
  const auto& [ref, offset] = place;
  if (ref.space != BufferRef::Space::Parameter || !blocks[ref.index] ||
      offset != ir::ElementOffset() ||
      blocks[ref.index]->data() != parameters[ref.index] ||  // brought from other memory
      std::ranges::find(outputs, parameters[ref.index]) != outputs.end())
    return nullptr;
  return blocks[ref.index].get();
}

const std::vector<DeviceKernelPtr>& ScheduleRunner::kernels() const {
  static const auto& none = *new std::vector<DeviceKernelPtr>();
  return none;
}

namespace {

// What lies around the runs of memory that an operand covers, if these are long and follow one
// another; everything if not.
std::vector<Bytes> bytesAround(const ir::LaunchStep& step, const ir::LaunchOperand& operand,
                               int64_t offset, int64_t size, int64_t bytes) {
  constexpr int64_t kLongRun = 1 << 12;
  size_t axis = 0;
  Dim run = 1, runs = 1;
  for (; axis < step.extents.size() && operand.strides[axis] == run; ++axis)
    run *= step.extents[axis];
  Dim reach = run;
  for (size_t outer = axis; outer < step.extents.size(); ++outer) {
    if (operand.strides[outer] < reach) return {{0, bytes}};
    reach = operand.strides[outer] * step.extents[outer];
    runs *= step.extents[outer];
  }
  if (run * size < kLongRun) return {{0, bytes}};
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

bool overlap(const ir::Temporary& x, const ir::Temporary& y) {
  return x.onHost == y.onHost && x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
}

}  // namespace

class ScheduleRunner::FrameMemory final : public StepMemory {
 public:
  FrameMemory(const ScheduleRunner& runner, const Frame& frame) : runner_(runner), frame_(frame) {}

  using StepMemory::read;
  MemoryBlockPtr read(const BufferRef& ref, const ir::ElementOffset& offset,
                      dtype type) const override {
    struct Borrowed final : MemoryBlock {
      Borrowed(char* elements, size_t bytes, MemoryBlockPtr of)
          : MemoryBlock(elements, bytes), of(std::move(of)) {}
      const MemoryBlockPtr of;
    };
    const ir::Schedule& schedule = runner_.schedule_;
    const auto bytes = static_cast<size_t>(bufferElements(schedule, ref, dtype::u8));
    void* elements = frame_.address(ref, schedule);
    const bool isOnHost =
        ref.space == BufferRef::Space::Parameter
            ? schedule.parameters[ref.index].number
            : ref.space == BufferRef::Space::Temporary && schedule.temporaries[ref.index].onHost;
    MemoryBlockPtr copy;
    if (!isOnHost && &runner_.memory_ != &hostMemory() && bytes > 0) {
      copy = runner_.memory_.allocate(bytes);
      runner_.memory_.copy(copy->data(), elements, {{{0, static_cast<int64_t>(bytes)}}});
      copy = copy->onHost();
      elements = copy->data();
    }
    const size_t skipped = frame_.elementAt(offset) * getTypeSize(type);
    return std::make_shared<Borrowed>(static_cast<char*>(elements) + skipped, bytes - skipped,
                                      std::move(copy));
  }
  int64_t elementAt(const ir::ElementOffset& offset) const override {
    return frame_.elementAt(offset);
  }
  uint64_t number(int parameter) const override { return frame_.numberBits[parameter]; }
  std::span<const uint64_t> found(size_t step) const override {
    return frame_.found.empty() ? std::span<const uint64_t>() : frame_.found[step];
  }

 private:
  const ScheduleRunner& runner_;
  const Frame& frame_;
};

void ScheduleRunner::observe(const Frame& frame, size_t begin, size_t end) const {
  memory_.finish();  // so that a step's time is its own
  frame.observer->afterSteps(begin, end, FrameMemory(*this, frame));
}

void ScheduleRunner::checkIndices(const Frame& frame) const {
  for (int step : checks_.calls) {
    const auto& call = std::get<ir::LibraryStep>(schedule_.steps[step]);
    const auto& types = call.operandTypes;
    if (types.back().shape.elements() == 0) continue;  // looks nothing up
    ir::checkIndices(static_cast<int64_t*>(addressOf(call.operands[1], types[1], frame)),
                     types[1].shape.elements(), types[0].shape[call.attrs[0]], call.origin);
  }
}

namespace {

ir::Schedule withScratch(ir::Schedule schedule, const ir::ScratchBytes& scratchBytes) {
  schedule.device.scratchBytes = scratchBytes;
  schedule.steps.shrink_to_fit();  // it is kept for long
  // What stands in for a plan that failed asks no extension of the compiler.
  if (planner::addScratch(&schedule)) planner::placeTemporaries(&schedule, /*asksOthers=*/false);
  return schedule;
}

}  // namespace

ScheduleRunner::ScheduleRunner(ir::Schedule schedule, const ir::ScratchBytes& scratchBytes,
                               DeviceMemory& memory)
    : schedule_(withScratch(std::move(schedule), scratchBytes)),
      memory_(memory),
      arenaBytes_(schedule_.arenaBytes),
      checks_(&memory == &hostMemory() ? planner::earlyChecks(schedule_) : planner::EarlyChecks()),
      candidates_(planner::reusableParameters(schedule_, &memory == &hostMemory())),
      origins_(schedule_.outputs.size()),
      replaceable_(schedule_.outputs.size()),
      last_(schedule_.outputs.size()),
      replaced_(schedule_.outputs.size()) {
  for (size_t i = 0; i < schedule_.outputs.size(); ++i) {
    writers_.push_back(schedule_.outputs[i].over < 0 ? Writer() : findWriter(static_cast<int>(i)));
    reusable_.insert(reusable_.end(), candidates_[i].begin(), candidates_[i].end());
  }
  for (const ir::Step& step : schedule_.steps) {
    const ir::StepBuffers buffers = stepBuffers(schedule_, step);
    for (const BufferRef& ref : buffers.writes) {
      if (ref.space != BufferRef::Space::Output) continue;
      origins_[ref.index] = {stepName(schedule_, step), stepSite(step)};
      if (replaysByAddress()) noteReplaced(buffers, ref.index);
    }
  }
  for (const ir::Temporary& each : schedule_.temporaries)
    if (each.onHost) hostBytes_ = std::max(hostBytes_, each.offset + each.bytes);
  std::ranges::sort(reusable_);
  reusable_.erase(std::ranges::unique(reusable_).begin(), reusable_.end());
}

void ScheduleRunner::noteReplaced(const ir::StepBuffers& writer, int output) {
  constexpr size_t kMostBytes = 1 << 16;
  const ir::ScheduleOutput& to = schedule_.outputs[output];
  const size_t bytes = bytesOf(to.type.type, to.type.shape);
  if (!candidates_[output].empty() || to.over >= 0 || bytes > kMostBytes) return;
  for (const BufferRef& ref : writer.reads) {
    if (ref.space != BufferRef::Space::Parameter) continue;
    const ir::ValueType& from = schedule_.parameters[ref.index].type;
    if (bytesOf(from.type, from.shape) != bytes || schedule_.parameters[ref.index].number) continue;
    replaceable_[output].push_back(ref.index);
  }
}

MemoryBlockPtr ScheduleRunner::newOutput(size_t output) const {
  // Under the mutex there, and nowhere else.
  const MemoryBlockPtr block = replaysByAddress() ? std::move(replaced_[output]) : nullptr;
  if (block.use_count() == 1) {
    block->willChange();
    return block;
  }
  const ir::ValueType& type = schedule_.outputs[output].type;
  return memory_.allocate(bytesOf(type.type, type.shape), originOf(output));
}

void ScheduleRunner::keepReplaced(const Outputs& outputs,
                                  std::span<const MemoryBlockPtr> buffers) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const int parameter : replaceable_[i]) {
      const MemoryBlockPtr& block = buffers[parameter];
      const bool isIts = block.get() == last_[i] && block->bytes() == outputs[i]->bytes();
      if (isIts && std::ranges::count(outputs, block) == 0) replaced_[i] = block;
    }
    last_[i] = outputs[i].get();
  }
}

// Operators of eager mode, and plans that were kept on disk, have no lines but those of their runs.
BufferOrigin ScheduleRunner::originOf(size_t output) const {
  const BufferOrigin& known = origins_[output];
  const bool areOurs = resultLines.size() == origins_.size();
  const CallSite site = areOurs ? resultLines[output] : known.site;
  return {known.what, site.address() ? site : currentCallSite()};
}

ScheduleRunner::Writer ScheduleRunner::findWriter(int output) const {
  const BufferRef own{BufferRef::Space::Output, output};
  Writer writer;
  std::ptrdiff_t uses = 0;
  for (const ir::Step& step : schedule_.steps) {
    const ir::StepBuffers buffers = stepBuffers(schedule_, step);
    uses += std::ranges::count(buffers.reads, own) + std::ranges::count(buffers.writes, own);
    if (const auto* launch = std::get_if<ir::LaunchStep>(&step)) {
      const auto found = std::ranges::find(launch->operands, own, &ir::LaunchOperand::buffer);
      if (found != launch->operands.end())
        writer = {launch, static_cast<size_t>(found - launch->operands.begin())};
    }
  }
  return uses == 1 ? writer : Writer();
}

// A new buffer with those elements of an output's parameter that no step overwrites.
MemoryBlockPtr ScheduleRunner::copyOf(const void* elements, size_t output,
                                      const Frame& frame) const {
  const ir::ValueType& type = schedule_.outputs[output].type;
  const auto bytes = static_cast<int64_t>(bytesOf(type.type, type.shape));
  MemoryBlockPtr copy = memory_.allocate(bytes, originOf(output));
  std::vector<Bytes> wanted = {{0, bytes}};
  if (const Writer& writer = writers_[output]; writer.step && bytes > kCopyBytes) {
    const ir::LaunchOperand& operand = writer.step->operands[writer.operand];
    wanted = bytesAround(*writer.step, operand, frame.elementAt(operand.offset),
                         static_cast<int64_t>(getTypeSize(type.type)), bytes);
  }
  memory_.copy(copy->data(), elements, wanted);
  for (const auto& [begin, end] : wanted) counters().bytesMoved += 2 * (end - begin);
  return copy;
}

// Null for outputs that share a buffer. Those over a parameter choose first: they would have to
// copy what another one takes.
LoadedSchedule::Outputs ScheduleRunner::placeOutputs(const Frame& frame,
                                                     std::span<const MemoryBlockPtr> buffers,
                                                     std::span<const bool> spare) const {
  Outputs outputs(schedule_.outputs.size());
  absl::InlinedVector<bool, 8> free(spare.begin(), spare.end());
  free.resize(buffers.size(), false);
  const std::unique_lock<std::mutex> lock =
      replaysByAddress() ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  // What was brought from other memory goes after the run.
  const auto isFree = [&](int p) { return free[p] && buffers[p]->data() == frame.parameters[p]; };
  for (const bool isOver : {true, false}) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ir::ScheduleOutput& output = schedule_.outputs[i];
      if (output.shared || (output.over >= 0) != isOver) continue;
      const auto isIts = [&](int p) { return isFree(p) && buffers[p].get() == last_[i]; };
      auto taken = std::ranges::find_if(candidates_[i], isIts);
      if (taken == candidates_[i].end()) taken = std::ranges::find_if(candidates_[i], isFree);
      if (taken != candidates_[i].end()) {
        outputs[i] = buffers[*taken];
        outputs[i]->willChange();
        free[*taken] = false;
        continue;
      }
      outputs[i] = isOver ? copyOf(frame.parameters[output.over], i, frame) : newOutput(i);
    }
  }
  return outputs;
}

StepObserver*& stepObserver() {
  thread_local StepObserver* observer = nullptr;
  return observer;
}

LoadedSchedule::Outputs ScheduleRunner::run(std::span<const MemoryBlockPtr> buffers,
                                            std::span<const Number> numbers,
                                            std::span<const bool> spare) const {
  Frame frame;
  frame.observer = stepObserver();
  std::optional<ProfiledRun> profiled;
  if (profile::isActive()) frame.observer = &profiled.emplace(schedule_, labels_, frame.observer);
  frame.blocks = buffers;
  absl::InlinedVector<MemoryBlockPtr, 2> brought;
  const auto addressOf = [&](const MemoryBlockPtr& block) {
    return memory_.has(*block) ? block->data() : brought.emplace_back(memory_.bring(block))->data();
  };
  frame.numberBits.resize(numbers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    frame.numberBits[i] = numbers[i].bits();
    void* const number = &frame.numberBits[i];
    frame.parameters.push_back(schedule_.parameters[i].number ? number : addressOf(buffers[i]));
  }
  MemoryBlockPtr arena;
  Outputs outputs = placeOutputs(frame, buffers, spare);
  if (arenaBytes_ > 0) {
    arena = memory_.allocate(arenaBytes_, BufferOrigin{"temporaries of a plan"});
    frame.arena = static_cast<char*>(arena->data());
  }
  const MemoryBlockPtr hostArena = hostBytes_ > 0 ? memory_.allocateOnHost(hostBytes_) : nullptr;
  if (hostArena) frame.hostArena = static_cast<char*>(hostArena->data());
  for (const MemoryBlockPtr& output : outputs)
    frame.outputs.push_back(output ? output->data() : nullptr);
  {
    const FloatEnvironment environment;
    frame.poisons = arena != nullptr && poisons();
    for (size_t i = 0; frame.poisons && i < schedule_.temporaries.size(); ++i)
      if (!schedule_.temporaries[i].onHost) frame.born.push_back(&schedule_.temporaries[i]);
    std::ranges::sort(frame.born, {}, &ir::Temporary::first);
    frame.dying = frame.born;
    std::ranges::sort(frame.dying, {}, &ir::Temporary::last);
    if (checks_.step == 0) checkIndices(frame);
    runSteps(frame);
    if (replaysByAddress()) keepReplaced(outputs, buffers);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [type, shared, source, over] = schedule_.outputs[i];
    if (!shared) continue;
    outputs[i] = source.space == ir::BufferRef::Space::Parameter ? buffers[source.index]
                                                                 : outputs[source.index];
  }
  return outputs;
}

void ScheduleRunner::poisonDead(const Frame& frame, int begin, int end) const {
  // Of plans of a million steps, too.
  const auto within = [&](const auto& sorted, int ir::Temporary::* step) {
    return std::ranges::subrange(std::ranges::lower_bound(sorted, begin, {}, step),
                                 std::ranges::lower_bound(sorted, end, {}, step));
  };
  for (const ir::Temporary* dead : within(frame.dying, &ir::Temporary::last)) {
    // Steps that run together may have filled what died with the first of them.
    const auto takes = [&](const ir::Temporary* other) {
      return end <= other->last && overlap(*dead, *other);
    };
    if (std::ranges::none_of(within(frame.born, &ir::Temporary::first), takes))
      memory_.fill(frame.arena + dead->offset, kPoison, dead->bytes);
  }
}

ScheduleRunner::LaunchData ScheduleRunner::launchData(const ir::LaunchStep& launch,
                                                      const Frame& frame) const {
  const ir::Kernel& kernel = schedule_.kernels[launch.kernel];
  LaunchData result;
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const ir::LaunchOperand& operand = launch.operands[i];
    result.data[i] = operand.buffer ? frame.address(*operand.buffer, operand.offset,
                                                    kernel.operands[i].type, schedule_)
                                    : reinterpret_cast<void*>(frame.elementAt(operand.offset));
  }
  for (size_t i = 0; i < launch.numbers.size(); ++i)
    result.scalars[i] = frame.numberBits[launch.numbers[i]];
  return result;
}

bool ScheduleRunner::isApart(const Touched& others, const ir::Step& step) const {
  const auto overlaps = [&](const BufferRef& ref, const std::vector<int>& temporaries) {
    return std::ranges::any_of(temporaries, [&](int other) {
      return overlap(schedule_.temporaries[ref.index], schedule_.temporaries[other]);
    });
  };
  const ir::StepBuffers buffers = stepBuffers(schedule_, step);
  const auto isTaken = [&](const BufferRef& read) {
    return read.space == BufferRef::Space::Temporary ? overlaps(read, others.writtenTemporaries)
                                                     : others.writes.contains(read);
  };
  const auto takes = [&](const BufferRef& written) {
    const auto isRead = [&](int parameter) {
      return others.reads.contains({BufferRef::Space::Parameter, parameter});
    };
    return written.space == BufferRef::Space::Temporary
               ? overlaps(written, others.readTemporaries) ||
                     overlaps(written, others.writtenTemporaries)
               : others.writes.contains(written) || others.reads.contains(written) ||
                     std::ranges::any_of(candidates_[written.index], isRead);
  };
  return std::ranges::none_of(buffers.reads, isTaken) &&
         std::ranges::none_of(buffers.writes, takes);
}

void ScheduleRunner::addTo(Touched* touched, const ir::Step& step) const {
  const ir::StepBuffers buffers = stepBuffers(schedule_, step);
  for (const BufferRef& ref : buffers.reads)
    ref.space == BufferRef::Space::Temporary ? touched->readTemporaries.push_back(ref.index)
                                             : void(touched->reads.insert(ref));
  for (const BufferRef& ref : buffers.writes) {
    if (ref.space == BufferRef::Space::Temporary) {
      touched->writtenTemporaries.push_back(ref.index);
      continue;
    }
    touched->writes.insert(ref);
    for (int parameter : candidates_[ref.index])
      touched->writes.insert({BufferRef::Space::Parameter, parameter});
  }
}

ScheduleRunner::Touched ScheduleRunner::touchedBy(const ir::Step& launch) const {
  Touched touched;
  // What the call reads dies with its epilogue.
  if (std::get<ir::LaunchStep>(launch).epilogue) addTo(&touched, *(&launch - 1));
  addTo(&touched, launch);
  return touched;
}

bool ScheduleRunner::joins(const Touched& others, const ir::Step& launch) const {
  const int kernel = std::get<ir::LaunchStep>(launch).kernel;
  const auto* last = std::get_if<ir::LaunchStep>(&launch - 1);
  return last && last->kernel == kernel && schedule_.kernels[kernel].gatherCount() == 0 &&
         &launch - schedule_.steps.data() != checks_.step && isApart(others, launch);
}

void ScheduleRunner::interpretCall(const ir::LibraryStep& call, const Frame& frame) const {
  std::vector<ir::HostOperand> operands;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const ir::ValueType& type = call.operandTypes[i];
    operands.push_back({&type, addressOf(call.operands[i], type, frame)});
  }
  withOrigin(call, [&] {
    ir::interpret(call.op, operands, call.attrs, call.resultType,
                  addressOf(call.result, call.resultType, frame));
  });
}

}  // namespace fl::runtime
