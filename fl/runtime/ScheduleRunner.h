// What running a schedule has in common on all devices: buffers and their addresses, outputs, the
// arena.
#pragma once

#include <array>
#include <mutex>
#include <set>

#include "absl/container/inlined_vector.h"
#include "fl/planner/Reuse.h"
#include "fl/runtime/Device.h"
#include "fl/runtime/StepLabel.h"

namespace fl::runtime {

class ScheduleRunner : public LoadedSchedule {
 public:
  explicit ScheduleRunner(ir::Schedule schedule, const ir::ScratchBytes& scratchBytes = {},
                          DeviceMemory& memory = hostMemory());

  Outputs run(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
              std::span<const bool> spare) const final;
  const ir::Schedule& schedule() const final { return schedule_; }
  const std::vector<int>& reusable() const final { return reusable_; }
  const std::vector<DeviceKernelPtr>& kernels() const override;

 protected:
  // The addresses of one run.
  struct Frame {
    absl::InlinedVector<void*, 8> parameters;  // a number's is that of its element
    absl::InlinedVector<void*, 8> outputs;
    std::span<const MemoryBlockPtr> blocks;  // of the parameters
    char* arena = nullptr;
    char* hostArena = nullptr;  // of temporaries on the host
    absl::InlinedVector<uint64_t, 8> numberBits;
    bool poisons = false;                                     // FL_POISON=1
    std::vector<const ir::Temporary*> born = {}, dying = {};  // then: all, by first and last step
    StepObserver* observer = nullptr;
    // By step, for who finds NaN; shared by the threads that run one.
    mutable std::vector<std::vector<uint64_t>> found = {};

    void* address(const ir::BufferRef& ref, const ir::Schedule& schedule) const;
    // Of the element of a buffer of `type` that an offset says.
    void* address(const ir::BufferRef& ref, const ir::ElementOffset& offset, dtype type,
                  const ir::Schedule& schedule) const;
    int64_t elementAt(const ir::ElementOffset& offset) const;
    // The block of a parameter all of whose elements these are, and that stay as they are during
    // this run; null for others.
    const MemoryBlock* constant(const ir::BufferPlace& place) const;
  };
  virtual void runSteps(const Frame& frame) const = 0;
  // For runSteps() to call, in order: steps [begin, end) have run. The observer is told.
  // Temporaries that no later step uses are poisoned, if memory is: what reads one whose place may
  // be another's finds no value. Throws before the first step that may write over a parameter if a
  // later one would find a bad index.
  void afterSteps(const Frame& frame, size_t begin, size_t end) const {
    if (frame.observer) observe(frame, begin, end);
    if (frame.poisons) poisonDead(frame, static_cast<int>(begin), static_cast<int>(end));
    if (static_cast<int>(end) == checks_.step) checkIndices(frame);
  }

  // Where the operands of a launch lie in one run, and the bits of its numbers (KernelArgs).
  struct LaunchData {
    std::array<void*, ir::kMaxOperands> data;
    std::array<uint64_t, ir::kMaxOperands> scalars;
  };
  LaunchData launchData(const ir::LaunchStep& launch, const Frame& frame) const;
  // Where an operand of a call, or its result, lies.
  void* addressOf(const ir::BufferPlace& place, const ir::ValueType& type,
                  const Frame& frame) const {
    return frame.address(place.buffer, place.offset, type.type, schedule_);
  }

  // Runs `body`; a bad index that it finds is that of `call`.
  template <class F>
  static void withOrigin(const ir::LibraryStep& call, F&& body) {
    try {
      body();
    } catch (const ir::IndexOutOfRange& error) {
      throw ir::IndexOutOfRange(error.bad, call.origin);
    }
  }
  // Memory that steps read and write, the parameters among it that outputs may be placed in.
  struct Touched {
    std::set<ir::BufferRef> reads, writes;
    std::vector<int> readTemporaries, writtenTemporaries;
  };
  void addTo(Touched* touched, const ir::Step& step) const;
  // What a launch touches that runs by itself, or is the first of neighbours that run as one.
  Touched touchedBy(const ir::Step& launch) const;
  // Whether a launch may run as one with those before it, of which there are: their kernel is the
  // same, and they need nothing of one another.
  bool joins(const Touched& others, const ir::Step& launch) const;
  // Where the scratch memory of a step lies, null if it has none.
  template <class Step>  // a launch or a call
  char* scratchOf(const Step& step, const Frame& frame) const {
    return step.scratch < 0 ? nullptr : frame.arena + schedule_.temporaries[step.scratch].offset;
  }
  // Runs a call by the reference interpreter.
  void interpretCall(const ir::LibraryStep& call, const Frame& frame) const;

  const ir::Schedule schedule_;
  DeviceMemory& memory_;
  size_t arenaBytes_;     // the schedule's, and what constructors add behind it
  size_t hostBytes_ = 0;  // of temporaries on the host

 private:
  // The one operand that is written to an output, where no step reads it; null otherwise.
  struct Writer {
    const ir::LaunchStep* step = nullptr;
    size_t operand = 0;
  };
  class FrameMemory;
  // Whether a step and others need nothing of one another, wherever outputs are placed.
  bool isApart(const Touched& others, const ir::Step& step) const;
  void observe(const Frame& frame, size_t begin, size_t end) const;
  void checkIndices(const Frame& frame) const;
  BufferOrigin originOf(size_t output) const;
  Writer findWriter(int output) const;
  void poisonDead(const Frame& frame, int begin, int end) const;
  Outputs placeOutputs(const Frame& frame, std::span<const MemoryBlockPtr> buffers,
                       std::span<const bool> spare) const;
  MemoryBlockPtr copyOf(const void* elements, size_t output, const Frame& frame) const;
  void noteReplaced(const ir::StepBuffers& writer, int output);
  MemoryBlockPtr newOutput(size_t output) const;
  void keepReplaced(const Outputs& outputs, std::span<const MemoryBlockPtr> buffers) const;

  const planner::EarlyChecks checks_;
  const std::vector<std::vector<int>> candidates_;  // parameters, by output
  std::vector<int> reusable_;                       // all of them
  std::vector<Writer> writers_;                     // by output that is over a parameter
  std::vector<BufferOrigin> origins_;               // of outputs
  // A device that does wants few addresses to come again and again. There an output that is, run
  // after run, the new value of a parameter is written over that one, if it may be, rather than
  // over another; a small one that may not takes turns in two blocks.
  bool replaysByAddress() const { return &memory_ != &hostMemory(); }
  // By small output that is over no parameter, those that it may be a new value of.
  std::vector<std::vector<int>> replaceable_;
  mutable std::vector<const MemoryBlock*> last_;  // outputs of the last run
  mutable std::vector<MemoryBlockPtr> replaced_;  // the values before them
  mutable std::mutex mutex_;
  mutable StepLabels labels_;
};

}  // namespace fl::runtime
