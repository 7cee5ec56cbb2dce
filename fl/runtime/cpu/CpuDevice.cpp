#include "fl/runtime/cpu/CpuDevice.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/host/ThreadPool.h"
#include "fl/library/Library.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/ScheduleRunner.h"
#include "fl/runtime/StepLabel.h"
#include "fl/runtime/cpu/CodeLoader.h"
#include "fl/runtime/cpu/CodeNames.h"
#include "fl/runtime/cpu/LaunchShape.h"
#include "fl/runtime/cpu/PerfDump.h"
#include "fl/runtime/cpu/RowChunks.h"
#include "fl/tile/HostTarget.h"
#include "fl/tile/TileInterpreter.h"
#include "fl/tile/TileOps.h"

namespace fl::runtime::cpu {
namespace {

// Memory of this thread's own, kept until it ends; pages that no kernel has touched are not taken.
// Kernels that run later, from destructors and at exit, have it made anew.
void* threadScratch() {
  constexpr std::align_val_t kAlignment{64};
  thread_local void* memory = nullptr;
  thread_local const std::shared_ptr<void> owner(
      nullptr, [](void*) { ::operator delete(std::exchange(memory, nullptr), kAlignment); });
  if (!memory) memory = ::operator new(ir::kMaxKeptRows * ir::kKeptRowBytes, kAlignment);
  return memory;
}

constexpr char kNotMlir[] = "FL_EMITTER=mlir: `fl run` alone has MLIR run graphs; kernels are ours";

class CpuKernel : public DeviceKernel {
 public:
  CpuKernel(const ir::Kernel& kernel, ir::Stores stores, bool findsNan)
      : kernel_(kernel), stores_(stores), findsNan_(findsNan) {
    verify(kernel_);  // the program, made later, would throw as well: too late for another plan
  }

  const ir::Kernel& kernel() const override { return kernel_; }
  ir::Stores stores() const override { return stores_; }
  bool findsNan() const override { return findsNan_; }
  bool compiled() const override { return entry_.load(std::memory_order_acquire) != nullptr; }
  void setArtifact(const ir::Artifact& artifact) override {
    static std::once_flag told;
    if (flags().emitter == "mlir") std::call_once(told, logWarning, kNotMlir);
    code_ = LoadedCode::load(artifact);
    if (flags().jitNames == "on") {
      name_.emplace(kernelLabel(kernel_), code_->memory(), code_->bytes());
      dumpForPerf(kernelLabel(kernel_), code_->memory(), code_->bytes());
    }
    entry_.store(code_->entry(), std::memory_order_release);
  }
  int64_t run(ir::KernelArgs args, int64_t begin, int64_t end) const {
    const ir::KernelFunction entry = entry_.load(std::memory_order_acquire);
    if (!entry || !isPlaced(args)) {
      for (size_t i = 0; args.found && i < kernel_.values.size(); ++i)
        std::atomic_ref(args.found[i]).store(StepMemory::kNotLooked, std::memory_order_relaxed);
      std::call_once(once_, [&] { program_.emplace(kernel_); });
      return program_->run(args, begin, end, stores_ == ir::Stores::Streaming);
    }
    if (kernel_.rows() && stores_ != ir::Stores::Cached) args.scratch = threadScratch();
    return entry(&args, begin, end);
  }

 private:
  // Streaming code asks for alignment, which memory that guards its ends does not have.
  bool isPlaced(const ir::KernelArgs& args) const {
    bool isPlaced = true;
    for (size_t i = 0; stores_ == ir::Stores::Streaming && i < kernel_.operands.size(); ++i)
      if (kernel_.operands[i].role == ir::KernelOperand::Role::Output)
        isPlaced &= reinterpret_cast<uintptr_t>(args.data[i]) % 64 == 0;
    return isPlaced;
  }

  const ir::Kernel kernel_;
  const ir::Stores stores_;
  const bool findsNan_;
  mutable std::once_flag once_;  // of the program: most kernels have code before they run
  mutable std::optional<tile::TileProgram> program_;
  std::shared_ptr<LoadedCode> code_;
  std::optional<NamedCode> name_;  // FL_JIT_NAMES=on
  std::atomic<ir::KernelFunction> entry_ = nullptr;
};

// A launch with all that does not depend on the run.
struct PreparedLaunch {
  const CpuKernel* kernel;
  const ir::LaunchStep* step;
  std::vector<int64_t> strides;  // [operands][rank]
  std::vector<int64_t> extents;
  int64_t domain;
  int64_t elements;
  int64_t grain;                // equal to domain if one thread does it
  int64_t turns;                // parts of the domain whose pieces follow one another: turnsOf()
  std::vector<int64_t> places;  // KernelArgs::places
  size_t number;                // of the step in its schedule
};

// Launches of one kernel that do not need one another, run as one.
struct LaunchGroup {
  // Indices [begin, end) of a launch's domain.
  struct Part {
    size_t launch;
    int64_t begin;
    int64_t end;
  };
  std::vector<PreparedLaunch> launches;
  std::vector<Part> parts;
  int64_t elements = 0;
};

// A launch that reduces so much to one element that its chunks are worth threads of their own.
struct ChunkedLaunch {
  const CpuKernel* kernel;  // chunks.chunks
  const ir::LaunchStep* step;
  RowChunks chunks;
  tile::TileProgram finish;
};
constexpr int64_t kChunkedElements = 1 << 18;
constexpr int64_t kChunksOfThread = 16;  // at least

struct PreparedCall {
  const ir::LibraryStep* step;
  std::shared_ptr<library::LibraryFunction> function;  // null: the reference interpreter
  std::shared_ptr<library::LibraryFunction> packed;    // for a packed operand; null without Packing
  // What runs on each part of the result.
  std::optional<PreparedLaunch> epilogue = {};
};

// Plans are many, and launches of that kind few.
using PreparedStep = std::variant<LaunchGroup, std::unique_ptr<ChunkedLaunch>, PreparedCall>;

// The results of a reduction: of its chunks in order, and folded. Tile functions read whole groups.
class ChunkResults {
 public:
  ChunkResults(const ir::KernelStage::Reduce& reduce, dtype type, int64_t chunks)
      : reduce_(reduce),
        type_(type),
        chunks_(chunks),
        memory_(getTypeSize(type) * (chunks + tile::kTileGroup)) {}
  char* at(int64_t chunk) { return memory_.data() + getTypeSize(type_) * chunk; }
  char* folded() { return at(chunks_); }
  void fold() {
    const uint64_t init = ir::reduceInit(reduce_.op, type_).bits();
    const tile::TileOps& ops = tile::tileOps(tile::bestTileVariant());
    ops.reductions[static_cast<int>(reduce_.op)][static_cast<int>(type_)].fold(folded(), at(0),
                                                                               chunks_, &init);
  }

 private:
  ir::KernelStage::Reduce reduce_;
  dtype type_;
  int64_t chunks_;
  std::vector<char> memory_;
};

// Of the indices that parts of a launch found out of bounds, that of the first part.
class FirstBadIndex {
 public:
  void note(int64_t begin, const ir::IndexOutOfRange& error) {
    const std::lock_guard lock(mutex_);
    if (!first_ || begin < first_->first) first_.emplace(begin, error);
  }
  void check() const {
    if (first_) throw first_->second;
  }

 private:
  std::mutex mutex_;
  std::optional<std::pair<int64_t, ir::IndexOutOfRange>> first_;
};

size_t scratchBytesOf(const ir::Schedule& schedule, int step) {
  return makeCode(library::kMostCode, [&] { return library::scratchBytes(schedule, step); });
}

class CpuSchedule : public ScheduleRunner {
 public:
  CpuSchedule(ir::Schedule schedule, KernelCache* cache)
      : ScheduleRunner(std::move(schedule), scratchBytesOf) {
    for (const ir::Step& step : schedule_.steps) {
      bytes_ += stepBytes(schedule_, step);
      if (const auto* launch = std::get_if<ir::LaunchStep>(&step)) {
        const size_t number = &step - schedule_.steps.data();
        if (auto chunked = prepareChunked(*launch, cache)) {
          steps_.emplace_back(std::move(chunked));
        } else if (PreparedLaunch prepared = prepare(*launch, number, cache); attaches(prepared)) {
          std::get<PreparedCall>(steps_.back()).epilogue = std::move(prepared);
          continue;
        } else if (joins(prepared, step)) {
          addTo(&group_, step);
          append(&std::get<LaunchGroup>(steps_.back()), std::move(prepared));
          continue;
        } else {
          group_ = touchedBy(step);
          steps_.emplace_back(LaunchGroup());
          append(&std::get<LaunchGroup>(steps_.back()), std::move(prepared));
        }
        ++launches_;
      } else {
        steps_.emplace_back(prepare(std::get<ir::LibraryStep>(step)));
      }
    }
    steps_.shrink_to_fit();
  }

  const std::vector<DeviceKernelPtr>& kernels() const override { return kernels_; }

 protected:
  void runSteps(const Frame& frame) const override {
    prepareFound(frame);
    size_t begin = 0;
    for (const auto& step : steps_) {
      const size_t end = begin + stepsIn(step);
      if (const auto* group = std::get_if<LaunchGroup>(&step)) {
        group->launches.size() == 1 ? runLaunch(group->launches[0], frame)
                                    : runGroup(*group, frame);
      } else if (const auto* chunked = std::get_if<std::unique_ptr<ChunkedLaunch>>(&step)) {
        runChunked(**chunked, frame);
      } else {
        runCall(std::get<PreparedCall>(step), frame);
      }
      afterSteps(frame, begin, end);
      begin = end;
    }
    counters().kernelLaunches += launches_;
    if (launches_ < steps_.size()) counters().libraryCalls += steps_.size() - launches_;
    counters().bytesMoved += bytes_;
  }

 private:
  // How many of the schedule's.
  static size_t stepsIn(const PreparedStep& step) {
    const auto* group = std::get_if<LaunchGroup>(&step);
    const auto* call = std::get_if<PreparedCall>(&step);
    return group ? group->launches.size() : call && call->epilogue ? 2 : 1;
  }

  void prepareFound(const Frame& frame) const {
    for (size_t i = 0; findsNan_ && i < schedule_.steps.size(); ++i) {
      const auto* launch = std::get_if<ir::LaunchStep>(&schedule_.steps[i]);
      const size_t values = launch ? schedule_.kernels[launch->kernel].values.size() : 0;
      frame.found.emplace_back(values, StepMemory::kNotFound);
    }
  }

  ir::KernelArgs argsOf(const PreparedLaunch& launch, const LaunchData& where, const Frame& frame,
                        ir::BadIndex* badIndex = nullptr) const {
    ir::KernelArgs args{where.data.data(), launch.extents.data(), launch.strides.data(),
                        where.scalars.data(), badIndex};
    args.places = launch.places.data();
    if (findsNan_) args.found = frame.found[launch.number].data();
    return args;
  }

  // The variant of a launch's kernel.
  const CpuKernel* kernelOf(const ir::LaunchStep& step, KernelCache* cache) {
    const ir::Stores stores = chooseStores(schedule_, step);
    const CpuKernel*& variant = variants_[{step.kernel, stores}];
    if (!variant) variant = cachedKernel(schedule_.kernels[step.kernel], stores, cache);
    return variant;
  }

  const CpuKernel* cachedKernel(const ir::Kernel& kernel, ir::Stores stores, KernelCache* cache) {
    constexpr const char* kNames[] = {"k",       "streaming", "aligning",
                                      "keeping", "fetching",  "across"};
    const std::string name = kNames[static_cast<int>(stores)];
    DeviceKernelPtr& cached = (*cache)[printKernel(kernel, name + (findsNan_ ? "_nan" : ""))];
    if (!cached) cached = std::make_shared<CpuKernel>(kernel, stores, findsNan_);
    if (std::ranges::find(kernels_, cached) == kernels_.end()) kernels_.push_back(cached);
    return static_cast<const CpuKernel*>(cached.get());
  }

  std::unique_ptr<ChunkedLaunch> prepareChunked(const ir::LaunchStep& step, KernelCache* cache) {
    if (step.extents[0] < kChunkedElements || findsNan_) return nullptr;
    auto chunks = cutIntoChunks(schedule_.kernels[step.kernel]);
    if (!chunks) return nullptr;
    const ir::Stores stores = chooseStores(schedule_, step);
    const CpuKernel* kernel = cachedKernel(chunks->chunks.kernel, stores, cache);
    return std::unique_ptr<ChunkedLaunch>(
        new ChunkedLaunch{kernel, &step, *chunks, tile::TileProgram(chunks->finish.kernel)});
  }

  PreparedLaunch prepare(const ir::LaunchStep& step, size_t number, KernelCache* cache) {
    PreparedLaunch launch{.kernel = kernelOf(step, cache), .step = &step, .number = number};
    for (const ir::LaunchOperand& operand : step.operands)
      launch.strides.insert(launch.strides.end(), operand.strides.begin(), operand.strides.end());
    launch.extents.assign(step.extents.begin(), step.extents.end());
    launch.elements = Shape(step.extents).elements();
    const ir::Kernel& kernel = launch.kernel->kernel();
    launch.domain = kernelDomain(kernel, launch.extents.data());
    launch.grain = chooseGrain(kernel, launch.extents, launch.domain, launch.elements, true);
    launch.turns = turnsOf(kernel, step, launch.domain);
    launch.places = placesOf(kernel, step);
    if (launch.turns > 1) launch.grain = std::min(launch.grain, kTurnElements);
    return launch;
  }

  void append(LaunchGroup* group, PreparedLaunch launch) {
    const int64_t grain = chooseGrain(launch.kernel->kernel(), launch.extents, launch.domain,
                                      launch.elements, /*alone=*/false);
    for (int64_t begin = 0; begin < launch.domain; begin += grain)
      group->parts.push_back(
          {group->launches.size(), begin, std::min(begin + grain, launch.domain)});
    group->elements += launch.elements;
    group->launches.push_back(std::move(launch));
  }

  // Whether a launch may run at the same time as those of the last step.
  bool joins(const PreparedLaunch& launch, const ir::Step& step) const {
    const auto* group = steps_.empty() ? nullptr : std::get_if<LaunchGroup>(&steps_.back());
    return group && launch.turns == 1 && group->launches[0].turns == 1 &&
           ScheduleRunner::joins(group_, step);
  }

  // Whether a launch may run on parts of the last step's result: whole rows of its own, which begin
  // where its stores may.
  bool attaches(const PreparedLaunch& launch) const {
    const auto* call = steps_.empty() ? nullptr : std::get_if<PreparedCall>(&steps_.back());
    const auto* parts = call && call->function ? call->function->parted() : nullptr;
    if (!launch.step->epilogue || !parts || call->epilogue || launch.turns != 1 ||
        launch.domain == 0) {
      return false;
    }
    const int64_t unit = parts->partElements();
    const bool isPlaced =
        launch.kernel->stores() != ir::Stores::Streaming || unit % kStreamAlignment == 0;
    // As many threads take part as would in a launch of its own.
    const int64_t ranges = (launch.domain + launch.grain - 1) / launch.grain;
    const bool isSpread = parts->parts() >= std::min<int64_t>(ranges, host::threadPool().threads());
    return unit > 0 && unit % (launch.elements / launch.domain) == 0 && isPlaced && isSpread;
  }

  PreparedCall prepare(const ir::LibraryStep& step) {
    const auto function = library::functionOf(step);
    const bool packs = function && function->packing();
    return {&step, function, packs ? function->packing()->function : nullptr};
  }

  void runLaunch(const PreparedLaunch& launch, const Frame& frame) const {
    const ir::LaunchStep& step = *launch.step;
    const LaunchData where = launchData(step, frame);
    FirstBadIndex bad;
    const auto part = [&](int64_t begin, int64_t end) {
      ir::BadIndex badIndex;
      const ir::KernelArgs args = argsOf(launch, where, frame, &badIndex);
      const int64_t gather = launch.kernel->run(args, begin, end);
      if (gather >= 0) bad.note(begin, {badIndex, step.gathers[gather]});
    };
    if (launch.grain >= launch.domain) {
      part(0, launch.domain);
    } else {
      const int64_t turn = launch.domain / launch.turns;
      host::threadPool().parallelFor(turn, launch.grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = 0; i < launch.turns; ++i) part(i * turn + begin, i * turn + end);
      });
    }
    bad.check();
  }

  // None of its kernels finds a bad index.
  void runGroup(const LaunchGroup& group, const Frame& frame) const {
    const auto run = [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const auto& [number, begin, end] = group.parts[i];
        const PreparedLaunch& launch = group.launches[number];
        const LaunchData where = launchData(*launch.step, frame);
        launch.kernel->run(argsOf(launch, where, frame), begin, end);
      }
    };
    const auto parts = static_cast<int64_t>(group.parts.size());
    if (group.elements <= kSequentialElements) return run(0, parts);
    const int64_t perPart = group.elements / parts + 1;
    host::threadPool().parallelFor(parts, std::max<int64_t>(1, kChunkElements / perPart), run);
  }

  void runChunked(const ChunkedLaunch& launch, const Frame& frame) const {
    const ir::LaunchStep& step = *launch.step;
    const ir::Kernel& whole = schedule_.kernels[step.kernel];
    const LaunchData where = launchData(step, frame);
    const int64_t length = step.extents[0], full = length / ir::kRowChunk;
    const int64_t chunks = (length + ir::kRowChunk - 1) / ir::kRowChunk;
    std::vector<ChunkResults> results;
    for (const ir::KernelStage::Reduce& reduce : whole.stages[0].reduces)
      results.emplace_back(reduce, whole.values[reduce.value].type, chunks);
    host::threadPool().parallelFor(chunks, kChunksOfThread, [&](int64_t begin, int64_t end) {
      runChunks(launch, where, begin, std::min(end, full), ir::kRowChunk, results);
      runChunks(launch, where, full, end, length - full * ir::kRowChunk, results);
    });
    std::vector<void*> data;
    for (ChunkResults& result : results) result.fold();
    for (int operand : launch.chunks.finish.operands)
      data.push_back(operand < 0 ? results[-1 - operand].folded() : where.data[operand]);
    const std::vector<int64_t> strides(data.size(), 0);
    const int64_t one = 1;
    launch.finish.run({data.data(), &one, strides.data(), where.scalars.data()}, 0, 1);
  }

  // Chunks [begin, end), each of `length` elements.
  static void runChunks(const ChunkedLaunch& launch, const LaunchData& where, int64_t begin,
                        int64_t end, int64_t length, std::vector<ChunkResults>& results) {
    if (begin >= end) return;
    const KernelPart& part = launch.chunks.chunks;
    std::vector<void*> data;
    std::vector<int64_t> strides;
    for (size_t i = 0; i < part.operands.size(); ++i) {
      const int from = part.operands[i];
      if (from < 0) {
        data.push_back(results[-1 - from].at(begin));
        strides.insert(strides.end(), {0, 1});
        continue;
      }
      const ir::KernelOperand& operand = part.kernel.operands[i];
      const bool isIndex = operand.role == ir::KernelOperand::Role::Index;
      const int64_t size = isIndex ? 1 : static_cast<int64_t>(getTypeSize(operand.type));
      const int64_t stride = launch.step->operands[from].strides[0];
      data.push_back(static_cast<char*>(where.data[from]) + begin * ir::kRowChunk * stride * size);
      strides.insert(strides.end(), {stride, stride * ir::kRowChunk});
    }
    const int64_t extents[] = {length, end - begin};
    launch.kernel->run({data.data(), extents, strides.data(), where.scalars.data()}, 0,
                       end - begin);
  }

  void runCall(const PreparedCall& call, const Frame& frame) const {
    if (!call.function) return interpretCall(*call.step, frame);
    absl::InlinedVector<void*, 6> operands;
    const ir::LibraryStep& step = *call.step;
    void* const scratch = scratchOf(step, frame);
    for (size_t i = 0; i < step.operands.size(); ++i)
      operands.push_back(addressOf(step.operands[i], step.operandTypes[i], frame));
    const MemoryBlockPtr packed = packOperand(call, frame, scratch);
    if (packed) operands[call.function->packing()->operand] = packed->data();
    const library::LibraryFunction& function = packed ? *call.packed : *call.function;
    void* const result = addressOf(step.result, step.resultType, frame);
    // Over the old value a scatter writes what changes, and leaves the rest alone.
    const auto bytes = [](const ir::ValueType& of) { return bytesOf(of.type, of.shape); };
    if (ir::opKind(step.op) == ir::Kind::Update && operands[0] == result &&
        step.operands[0].buffer != step.result.buffer)  // which stepBytes() knows
      counters().bytesMoved += bytes(step.operandTypes.back()) - 2 * bytes(step.resultType);
    withOrigin(step, [&] {
      call.epilogue ? runWithEpilogue(*function.parted(), *call.epilogue, operands.data(), result,
                                      scratch, frame)
                    : function.run(operands.data(), result, scratch, host::threadPool());
    });
  }

  // The packed form of an operand that has not changed since it was last read; null for others, and
  // where there is no memory for it.
  MemoryBlockPtr packOperand(const PreparedCall& call, const Frame& frame, void* scratch) const {
    const library::LibraryFunction& function = *call.function;
    const library::Packing* packing = function.packing();
    const MemoryBlock* block =
        packing ? frame.constant(call.step->operands[packing->operand]) : nullptr;
    if (!block) return nullptr;
    const auto pack = [&]() -> MemoryBlockPtr {
      try {
        auto packed = std::make_shared<Buffer>(packing->bytes, BufferOrigin{"a packed operand"});
        function.pack(block->data(), packed->data(), scratch);
        return packed;
      } catch (const std::bad_alloc&) {
        return nullptr;
      }
    };
    return block->inForm(packing->form, pack);
  }

  void runWithEpilogue(const library::PartedFunction& function, const PreparedLaunch& launch,
                       void* const* operands, void* result, void* scratch,
                       const Frame& frame) const {
    const LaunchData where = launchData(*launch.step, frame);
    const int64_t perItem = launch.elements / launch.domain;
    const ir::KernelArgs args = argsOf(launch, where, frame);
    function.runInParts(operands, result, scratch, host::threadPool(),
                        [&](int64_t begin, int64_t end) {
                          launch.kernel->run(args, begin / perItem, end / perItem);
                        });
  }

  std::vector<DeviceKernelPtr> kernels_;
  std::map<std::pair<int, ir::Stores>, const CpuKernel*> variants_;  // by number and stores
  Touched group_;  // by the last group, while steps are prepared
  std::vector<PreparedStep> steps_;
  size_t launches_ = 0, bytes_ = 0;
  const bool findsNan_ = flags().check.starts_with("nan");
};

class CpuDevice : public Device {
 public:
  std::string name() const override { return "cpu"; }
  ir::Lowering lowering() const override { return ir::Lowering::Kernels; }
  ir::Target target() const override { return tile::hostTarget(); }
  bool supportsLibrary(ir::Op op, const std::vector<ir::ValueType>& operands,
                       const ir::Attrs& attrs, const ir::ValueType& result) const override {
    return makeCode(library::kMostCode,
                    [&] { return library::librarySupports({op, attrs, operands, result}); }) > 0;
  }
  ir::DeviceTraits traits() const override { return {scratchBytesOf}; }
  std::unique_ptr<LoadedSchedule> load(ir::Schedule schedule, KernelCache* cache) override {
    return std::make_unique<CpuSchedule>(std::move(schedule), cache);
  }
};

}  // namespace

std::unique_ptr<Device> makeCpuDevice() { return std::make_unique<CpuDevice>(); }

}  // namespace fl::runtime::cpu
