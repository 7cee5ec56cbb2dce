#include "fl/runtime/cuda/CudaSchedule.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "fl/host/ThreadPool.h"
#include "fl/ir/Interpreter.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/SystemMemory.h"
#include "fl/runtime/cuda/Range.h"

namespace fl::runtime::cuda {

using ir::BufferRef;
using ir::cuda::GatherReport;
using ir::cuda::LaunchMemory;

namespace {

// To where the libraries want operands to begin, as every buffer does.
constexpr size_t kAlignment = MatmulDescription::kAlignment;
// And their workspaces: cuBLASLt refuses others.
constexpr size_t kWorkspaceAlignment = 256;

size_t alignedUp(size_t bytes) { return roundUp(bytes, kAlignment); }

// Which is on the host.
bool isNumber(const ir::Schedule& schedule, const BufferRef& ref) {
  return ref.space == BufferRef::Space::Parameter && schedule.parameters[ref.index].number;
}

std::shared_ptr<const DeviceCall> callOf(Context& context, const ir::Schedule& schedule,
                                         const ir::LibraryStep& step) {
  if (isMove(schedule, step)) {
    const BufferRef& to = step.result.buffer;
    const bool toHost =
        to.space == BufferRef::Space::Temporary && schedule.temporaries[to.index].onHost;
    return std::make_shared<HostMove>(stepBytes(schedule, step) / 2, toHost);
  }
  const auto takes = [&](const ir::BufferPlace& place) { return isNumber(schedule, place.buffer); };
  return std::ranges::any_of(step.operands, takes)
             ? nullptr
             : findCall(context, step.op, step.operandTypes, step.attrs, step.resultType);
}

ir::cuda::Launch shapeOf(const ir::Schedule& schedule, const ir::LaunchStep& step) {
  const std::vector<int64_t> extents(step.extents.begin(), step.extents.end());
  return ir::cuda::launchOf(schedule.kernels[step.kernel], extents.data());
}

// The library's workspace, and behind it room for each value that may begin anywhere in a buffer:
// runCall(). Temporaries are aligned as buffers are.
size_t workspaceBytes(const DeviceCall& call, const ir::LibraryStep& step) {
  size_t bytes = alignedUp(call.workspaceBytes());
  const auto add = [&](const ir::BufferPlace& place, const ir::ValueType& type) {
    if (place.offset != ir::ElementOffset()) bytes += alignedUp(bytesOf(type.type, type.shape));
  };
  for (size_t i = 0; i < step.operands.size(); ++i) add(step.operands[i], step.operandTypes[i]);
  add(step.result, step.resultType);
  return bytes > 0 ? bytes + kWorkspaceAlignment - kAlignment : 0;
}

}  // namespace

// Copies on the host of the buffers that one step reads and writes.
class CudaSchedule::HostCopies {
 public:
  explicit HostCopies(Memory& memory) : memory_(memory) {}

  // The step uses the buffer that begins there on the GPU. All uses come before of().
  void use(void* buffer, size_t bytes, bool isRead, bool isWritten) {
    Copy& copy = copies_[buffer];
    copy.bytes = std::max(copy.bytes, bytes);
    copy.isRead |= isRead;
    copy.isWritten |= isWritten;
  }
  char* of(void* buffer) {
    Copy& copy = copies_.at(buffer);
    if (!copy.elements) {
      copy.elements = std::make_shared<Buffer>(copy.bytes, BufferOrigin{"a copy on the host"});
      if (copy.isRead) memory_.download(copy.elements->data(), buffer, copy.bytes);
    }
    return static_cast<char*>(copy.elements->data());
  }
  void giveBack() {
    for (const auto& [buffer, copy] : copies_)
      if (copy.isWritten) memory_.upload(buffer, copy.elements->data(), copy.bytes);
  }

 private:
  struct Copy {
    size_t bytes = 0;
    bool isRead = false, isWritten = false;
    MemoryBlockPtr elements;
  };
  Memory& memory_;
  std::map<void*, Copy> copies_;
};

CudaSchedule::CudaSchedule(ir::Schedule schedule, Context& context, Memory& memory,
                           KernelCache* cache)
    : ScheduleRunner(std::move(schedule), scratchBytes(context), memory),
      context_(context),
      gpu_(memory),
      looksUpAgain_(planner::looksUpAgain(schedule_)) {
  for (const ir::Step& step : schedule_.steps) {
    bytes_ += stepBytes(schedule_, step);
    if (const auto* launch = std::get_if<ir::LaunchStep>(&step)) {
      steps_.emplace_back(prepare(*launch));
    } else {
      steps_.emplace_back(prepare(std::get<ir::LibraryStep>(step)));
    }
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    auto* call = std::get_if<PreparedCall>(&steps_[i]);
    if (call && call->call) call->fused = findFused(context, schedule_, i);
  }
  findGroups();
  chooseKernels(cache);
  findChains();
  reportsAt_ = alignedUp(arenaBytes_);
  if (!reporting_.empty()) arenaBytes_ = reportsAt_ + reporting_.size() * sizeof(GatherReport);
}

ir::ScratchBytes CudaSchedule::scratchBytes(Context& context) {
  return [&context](const ir::Schedule& schedule, int number) -> size_t {
    const ir::Step& step = schedule.steps[number];
    if (const auto* launch = std::get_if<ir::LaunchStep>(&step)) {
      return shapeOf(schedule, *launch).partBytes;
    }
    const auto& call = std::get<ir::LibraryStep>(step);
    const auto found = callOf(context, schedule, call);
    if (!found) return 0;
    const std::optional<FusedProduct> fused = findFused(context, schedule, number);
    return std::max(workspaceBytes(*found, call),
                    fused ? workspaceBytes(*fused->product, call) : 0);
  };
}

const CudaKernel* CudaSchedule::cachedKernel(const ir::Kernel& kernel, int launches,
                                             KernelCache* cache) {
  DeviceKernelPtr& cached = (*cache)[printKernel(kernel, detail::concat("k", launches))];
  if (!cached) cached = std::make_shared<CudaKernel>(context_, kernel, launches);
  if (std::ranges::find(kernels_, cached) == kernels_.end()) kernels_.push_back(cached);
  return static_cast<const CudaKernel*>(cached.get());
}

CudaSchedule::PreparedLaunch CudaSchedule::prepare(const ir::LaunchStep& step) {
  PreparedLaunch launch{.step = &step};
  launch.extents.assign(step.extents.begin(), step.extents.end());
  for (const ir::LaunchOperand& operand : step.operands)
    launch.strides.insert(launch.strides.end(), operand.strides.begin(), operand.strides.end());
  launch.shape = shapeOf(schedule_, step);
  if (launch.shape.sharedBytes > context_.sharedBytes()) launch.shape.sharedBytes = 0;
  if (schedule_.kernels[step.kernel].gatherCount() > 0) launch.report = addReport(step.gathers);
  return launch;
}

int CudaSchedule::addReport(std::vector<int> origins) {
  // The first is of all that is known to be good, and not read: an earlier step reports the same.
  if (reporting_.empty()) reporting_.emplace_back();
  if (looksUpAgain_[steps_.size()]) return 0;
  reporting_.push_back(std::move(origins));
  reported_ = steps_.size() + 1;
  return static_cast<int>(reporting_.size()) - 1;
}

CudaSchedule::PreparedCall CudaSchedule::prepare(const ir::LibraryStep& step) {
  auto call = callOf(context_, schedule_, step);
  if (!call) return {&step, nullptr, library::functionOf(step)};
  const int report = call->isKernel() ? addReport({step.origin}) : -1;
  return {&step, std::move(call), nullptr, {}, report};
}

std::optional<CudaSchedule::FusedProduct> CudaSchedule::findFused(Context& context,
                                                                  const ir::Schedule& schedule,
                                                                  size_t number) {
  const auto& step = std::get<ir::LibraryStep>(schedule.steps[number]);
  if (step.op != ir::Op::Matmul || number + 1 == schedule.steps.size()) return std::nullopt;
  std::optional<MatchedEpilogue> epilogue = matchEpilogue(schedule, number + 1);
  if (!epilogue) return std::nullopt;
  std::optional<MatmulShape> shape = matmulShape(step.operandTypes, step.attrs, step.resultType);
  shape->epilogue = epilogue->form;
  auto product = Matmul::find(context, *shape);
  if (!product) return std::nullopt;
  const auto& launch = std::get<ir::LaunchStep>(schedule.steps[number + 1]);
  return FusedProduct{std::move(product), &launch, std::move(*epilogue)};
}

// Whether a product may make the step, a launch.
bool CudaSchedule::isFused(size_t step) const {
  const auto* call = step > 0 ? std::get_if<PreparedCall>(&steps_[step - 1]) : nullptr;
  return call && call->fused;
}

void CudaSchedule::findGroups() {
  Touched touched;
  PreparedLaunch* first = nullptr;
  size_t most = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    auto* launch = std::get_if<PreparedLaunch>(&steps_[i]);
    const bool mayGroup = launch && launch->shape.blocks > 0 && !isFused(i) &&
                          ir::cuda::mayGroup(schedule_.kernels[launch->step->kernel]);
    if (!mayGroup) {
      first = nullptr;
    } else if (first && first->together < most && joins(touched, schedule_.steps[i])) {
      ++first->together;
      addTo(&touched, schedule_.steps[i]);
    } else {
      first = launch;
      touched = touchedBy(schedule_.steps[i]);
      most = ir::cuda::mostLaunches(packed(*launch, LaunchData(), {}).size());
    }
  }
}

// A group's code is for at least as many launches as it has.
void CudaSchedule::chooseKernels(KernelCache* cache) {
  for (size_t i = 0, end = 0; i < steps_.size(); i = end) {
    end = i + stepsAt(i);
    for (size_t member = i; member < end; ++member) {
      if (auto* launch = std::get_if<PreparedLaunch>(&steps_[member])) {
        const int launches = static_cast<int>(std::bit_ceil(end - i));
        launch->kernel = cachedKernel(schedule_.kernels[launch->step->kernel], launches, cache);
      }
    }
  }
}

size_t CudaSchedule::stepsAt(size_t number) const {
  const auto* launch = std::get_if<PreparedLaunch>(&steps_[number]);
  return launch ? launch->together : 1;
}

// What the numbers are, and where outputs lie, is known now.
const CudaSchedule::FusedProduct* CudaSchedule::fusedAt(size_t step, const Frame& frame) const {
  const auto* call = std::get_if<PreparedCall>(&steps_[step]);
  if (!call || !call->fused) return nullptr;
  const auto& [form, result, bias, auxiliary, numbers] = call->fused->epilogue;
  const auto isAt = [&](const std::optional<BufferRef>& operand, const BufferRef& place) {
    return operand && frame.address(*operand, schedule_) == frame.address(place, schedule_);
  };
  const bool holds = std::ranges::all_of(numbers, [&](const auto& number) {
    return frame.numberBits[call->fused->launch->numbers[number.first]] == number.second.bits();
  });
  return holds && !isAt(bias, result) && !isAt(auxiliary, result) ? &*call->fused : nullptr;
}

GatherReport* CudaSchedule::reportsOf(const Frame& frame) const {
  return reinterpret_cast<GatherReport*>(frame.arena + reportsAt_);
}

CudaSchedule::Arrival CudaSchedule::fetchReports(const Frame& frame) const {
  return gpu_.fetch(reportsOf(frame), reporting_.size() * sizeof(GatherReport));
}

// Each says that nothing was found while its first word is -1.
void CudaSchedule::checkReports(const Arrival& reports) const {
  const auto* each = static_cast<const GatherReport*>(reports->wait());
  for (size_t i = 1; i < reporting_.size(); ++i) {
    if (const auto& [gather, bad] = each[i]; gather >= 0) {
      throw ir::IndexOutOfRange(bad, reporting_[i][gather]);
    }
  }
}

void CudaSchedule::runSteps(const Frame& frame) const {
  if (!reporting_.empty()) {
    gpu_.fill(reportsOf(frame), 0xff, reporting_.size() * sizeof(GatherReport));
  }
  const Sources sources = sourcesOf(frame);
  const auto prepare = [&](size_t step) {
    return step < steps_.size() ? prepared(chains_[step].get(), frame, sources) : ReadyGraph();
  };
  Arrival reports;
  ReadyGraph ready = prepare(0);
  for (size_t i = 0; i < steps_.size();) {
    i = ready.graph ? launch(*chains_[i], ready) : runNext(i, frame);
    const bool haveReported = !reports && !reporting_.empty() && i >= reported_;
    if (haveReported) reports = fetchReports(frame);
    ready = prepare(i);
    // What is written over is not before all is good.
    if (haveReported && writesOver(frame)) checkReports(reports);
  }
  counters().bytesMoved += bytes_;
  if (reports) checkReports(reports);
}

bool CudaSchedule::writesOver(const Frame& frame) const {
  return std::ranges::any_of(frame.outputs, [&](void* output) {
    return output && std::ranges::count(frame.parameters, output) > 0;
  });
}

size_t CudaSchedule::runNext(size_t number, const Frame& frame) const {
  const FusedProduct* const fused = fusedAt(number, frame);
  const size_t end = number + (fused ? 2 : stepsAt(number));
  if (fused) {
    runCall(std::get<PreparedCall>(steps_[number]), fused, frame);
  } else {
    runStep(number, frame);
  }
  afterSteps(frame, number, end);
  return end;
}

void CudaSchedule::runStep(size_t number, const Frame& frame) const {
  if (const auto* call = std::get_if<PreparedCall>(&steps_[number])) {
    return call->call ? runCall(*call, nullptr, frame) : runOnHost(*call, frame);
  }
  if (std::get<PreparedLaunch>(steps_[number]).kernel->compiled()) return runLaunch(number, frame);
  for (size_t i = number; i < number + stepsAt(number); ++i)
    runOnHost(std::get<PreparedLaunch>(steps_[i]), frame);
}

LaunchMemory CudaSchedule::memoryOf(const PreparedLaunch& launch, const Frame& frame) const {
  LaunchMemory memory;
  if (launch.report >= 0) memory.report = reportsOf(frame) + launch.report;
  if (launch.shape.splits > 1) {
    memory.parts = scratchOf(*launch.step, frame);
    memory.counters = context_.counters();
  }
  return memory;
}

std::vector<uint64_t> CudaSchedule::packed(const PreparedLaunch& launch, const LaunchData& where,
                                           const LaunchMemory& memory) const {
  return ir::cuda::packArguments(
      schedule_.kernels[launch.step->kernel],
      {where.data.data(), launch.extents.data(), launch.strides.data(), where.scalars.data()},
      memory);
}

GraphLaunch CudaSchedule::launchAt(size_t number, const Frame& frame) const {
  std::vector<ir::cuda::PackedLaunch> all;
  for (size_t i = number; i < number + stepsAt(number); ++i) {
    const auto& launch = std::get<PreparedLaunch>(steps_[i]);
    all.push_back(
        {launch.shape, packed(launch, launchData(*launch.step, frame), memoryOf(launch, frame))});
  }
  const CudaKernel& kernel = *std::get<PreparedLaunch>(steps_[number]).kernel;
  const CUfunction function = kernel.functionFor(all[0].shape);
  if (kernel.launches() == 1) return {std::move(all[0]), function};
  return {packGroup(all, kernel.launches()), function};
}

void CudaSchedule::runLaunch(size_t number, const Frame& frame) const {
  const auto& first = std::get<PreparedLaunch>(steps_[number]);
  if (first.shape.blocks == 0) return;
  GraphLaunch launch = launchAt(number, frame);
  context_.launch(launch.function, launch.shape, launch.words, first.kernel->label(),
                  first.step->site);
  counters().kernelLaunches++;
}

void CudaSchedule::runCall(const PreparedCall& call, const FusedProduct* fused,
                           const Frame& frame) const {
  const ir::LibraryStep& step = *call.step;
  const Range range(ir::opName(step.op));
  const detail::CallSiteOverride recorded(step.site);
  const auto address = [&](const BufferRef& ref) { return frame.address(ref, schedule_); };
  const auto addressIf = [&](const std::optional<BufferRef>& ref) -> const void* {
    return ref ? address(*ref) : nullptr;
  };
  const auto place = reinterpret_cast<uintptr_t>(scratchOf(step, frame));
  auto* const workspace = reinterpret_cast<char*>(roundUp(place, kWorkspaceAlignment));
  const DeviceCall& library = fused ? *fused->product : *call.call;
  char* copies = workspace + alignedUp(library.workspaceBytes());
  // The elements themselves, or memory for a copy of those that are not aligned.
  const auto aligned = [&](void* elements, const ir::BufferPlace& place, size_t bytes) {
    const auto at = reinterpret_cast<uintptr_t>(elements);
    if (place.offset == ir::ElementOffset() || at == alignedUp(at)) return elements;
    return static_cast<void*>(std::exchange(copies, copies + alignedUp(bytes)));
  };
  const auto copy = [&](void* to, const void* from, size_t bytes) {
    if (to != from) gpu_.copy(to, from, {{{0, static_cast<int64_t>(bytes)}}});
  };
  std::vector<void*> operands;
  for (size_t i = 0; i < step.operands.size(); ++i) {
    const ir::ValueType& type = step.operandTypes[i];
    void* const elements = addressOf(step.operands[i], type, frame);
    const size_t bytes = bytesOf(type.type, type.shape);
    operands.push_back(aligned(elements, step.operands[i], bytes));
    copy(operands.back(), elements, bytes);
  }
  if (call.report >= 0) operands.push_back(reportsOf(frame) + call.report);
  if (fused) {
    const MatchedEpilogue& epilogue = fused->epilogue;
    fused->product->run(context_, operands.data(), address(epilogue.result), workspace,
                        addressIf(epilogue.bias), addressIf(epilogue.auxiliary));
  } else {
    void* const elements = addressOf(step.result, step.resultType, frame);
    const size_t bytes = bytesOf(step.resultType.type, step.resultType.shape);
    void* const result = aligned(elements, step.result, bytes);
    library.run(context_, operands.data(), result, workspace);
    copy(elements, result, bytes);
  }
  (library.isKernel() ? counters().kernelLaunches : counters().libraryCalls)++;
}

void CudaSchedule::runOnHost(const PreparedLaunch& launch, const Frame& frame) const {
  if (!reporting_.empty()) checkReports(fetchReports(frame));
  const ir::Kernel& kernel = launch.kernel->kernel();
  const ir::LaunchStep& step = *launch.step;
  LaunchData where = launchData(step, frame);
  HostCopies copies(gpu_);
  const auto addressOf = [&](size_t operand) {
    return frame.address(*step.operands[operand].buffer, schedule_);
  };
  for (size_t i = 0; i < step.operands.size(); ++i) {
    if (!step.operands[i].buffer) continue;
    const bool isWritten = kernel.operands[i].role == ir::KernelOperand::Role::Output;
    copies.use(addressOf(i), planner::bytesOfBuffer(schedule_, *step.operands[i].buffer), true,
               isWritten);
  }
  for (size_t i = 0; i < step.operands.size(); ++i) {
    if (!step.operands[i].buffer) continue;
    auto* begin = static_cast<char*>(addressOf(i));
    where.data[i] = copies.of(begin) + (static_cast<char*>(where.data[i]) - begin);
  }
  ir::BadIndex bad;
  const ir::KernelArgs args{where.data.data(), launch.extents.data(), launch.strides.data(),
                            where.scalars.data(), &bad};
  const int64_t gather =
      launch.kernel->interpreted().run(args, 0, kernelDomain(kernel, launch.extents.data()));
  if (gather >= 0) throw ir::IndexOutOfRange(bad, step.gathers[gather]);
  copies.giveBack();
  counters().hostCalls++;
}

void CudaSchedule::runOnHost(const PreparedCall& call, const Frame& frame) const {
  if (!reporting_.empty()) checkReports(fetchReports(frame));
  const ir::LibraryStep& step = *call.step;
  HostCopies copies(gpu_);
  for (const auto& [ref, offset] : step.operands) {
    if (isNumber(schedule_, ref)) continue;
    copies.use(frame.address(ref, schedule_), planner::bytesOfBuffer(schedule_, ref), true, false);
  }
  // Beside the result the buffer may have other values.
  copies.use(frame.address(step.result.buffer, schedule_),
             planner::bytesOfBuffer(schedule_, step.result.buffer), true, true);
  const auto onHost = [&](const ir::BufferPlace& place, const ir::ValueType& type) -> void* {
    auto* begin = static_cast<char*>(frame.address(place.buffer, schedule_));
    auto* elements = static_cast<char*>(addressOf(place, type, frame));
    return isNumber(schedule_, place.buffer) ? elements : copies.of(begin) + (elements - begin);
  };
  void* const result = onHost(step.result, step.resultType);
  std::vector<void*> operands;
  std::vector<ir::HostOperand> typed;
  for (size_t i = 0; i < step.operands.size(); ++i) {
    operands.push_back(onHost(step.operands[i], step.operandTypes[i]));
    typed.push_back({&step.operandTypes[i], operands.back()});
  }
  withOrigin(step, [&] {
    if (call.function) {
      const Buffer scratch(call.function->scratchBytes(), BufferOrigin{"scratch of a call"});
      call.function->run(operands.data(), result, scratch.data(), host::threadPool());
    } else {
      ir::interpret(step.op, typed, step.attrs, step.resultType, result);
    }
  });
  copies.giveBack();
  counters().hostCalls++;
}

}  // namespace fl::runtime::cuda
