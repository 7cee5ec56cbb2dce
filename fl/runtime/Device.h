// A device runs schedules. `cpu` runs kernels and oneDNN, `ref` interprets every op in double,
// `null` checks and runs nothing. Devices register by name in Device.cpp.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "fl/kernel/Artifact.h"
#include "fl/kernel/Lower.h"
#include "fl/kernel/Schedule.h"
#include "fl/runtime/DeviceMemory.h"

namespace fl::runtime {

// One kernel on a device. It can run from the start (tier 0); code that the compiler makes of it
// replaces tier 0 when it arrives, with the same results.
class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;
  virtual const ir::Kernel& kernel() const = 0;
  // The variant that code is made in.
  virtual ir::Stores stores() const { return ir::Stores::Cached; }
  // Whether that code tells where NaN is made (FL_CHECK=nan): KernelArgs::found.
  virtual bool findsNan() const { return false; }
  // How many launches its code makes at once, at most.
  virtual int launches() const { return 1; }
  virtual bool compiled() const = 0;
  // Loads code made of kernel() in that variant. Thread-safe against running.
  virtual void setArtifact(const ir::Artifact& artifact) = 0;

  // True the first time: the caller sees to its compilation. Thread-safe.
  bool claimCompilation() { return !claimed_.exchange(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> claimed_ = false;
};
using DeviceKernelPtr = std::shared_ptr<DeviceKernel>;

// Kernels by their text and variant, so that equal ones are prepared and compiled once. Not
// thread-safe.
using KernelCache = std::unordered_map<std::string, DeviceKernelPtr>;
// Drops the kernels that no loaded schedule refers to.
inline void dropUnused(KernelCache* cache) {
  std::erase_if(*cache, [](const auto& entry) { return entry.second.use_count() == 1; });
}

// What lies in memory between two steps of a run.
class StepMemory {
 public:
  virtual ~StepMemory() = default;
  // The elements of a buffer from one on, on the host.
  virtual MemoryBlockPtr read(const ir::BufferRef& ref, const ir::ElementOffset& offset,
                              dtype type) const = 0;
  MemoryBlockPtr read(const ir::BufferPlace& place, dtype type) const {
    return read(place.buffer, place.offset, type);
  }
  // Which element that is, and the bits of a number.
  virtual int64_t elementAt(const ir::ElementOffset& offset) const = 0;
  virtual uint64_t number(int parameter) const = 0;
  // KernelArgs::found after a launch: kNotFound where nothing was, kNotLooked where an interpreter
  // ran; empty for devices without code that finds NaN.
  static constexpr uint64_t kNotFound = UINT64_MAX, kNotLooked = UINT64_MAX - 1;
  virtual std::span<const uint64_t> found(size_t step) const = 0;
};

// Told by the runs of this thread that steps [begin, end) have run, together if they are several.
// What it throws ends the run.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void afterSteps(size_t begin, size_t end, const StepMemory& memory) = 0;
};
// That of this thread, none at first; it outlives the runs.
StepObserver*& stepObserver();

// The lines of the results of this thread's runs, where a plan may have been made for others; none
// at first.
inline thread_local std::span<const CallSite> resultLines;

// A schedule made ready to run: everything that can be computed before the inputs are known.
class LoadedSchedule {
 public:
  using Outputs = absl::InlinedVector<MemoryBlockPtr, 2>;

  virtual ~LoadedSchedule() = default;
  // One buffer for each parameter (null for numbers), one number for each number parameter (by
  // parameter index). Returns the outputs. Thread-safe. Throws ir::IndexOutOfRange, and then has
  // written to no parameter. One of a parameter that is spare may be given back as an output, with
  // that one's elements; an empty list says that none is.
  virtual Outputs run(std::span<const MemoryBlockPtr> buffers, std::span<const Number> numbers,
                      std::span<const bool> spare = {}) const = 0;
  // The parameters that run() would make use of if they were spare.
  virtual const std::vector<int>& reusable() const = 0;
  virtual const ir::Schedule& schedule() const = 0;
  virtual const std::vector<DeviceKernelPtr>& kernels() const = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  // Where its plans find and leave values; those of other memory are brought there for a run.
  virtual DeviceMemory& memory() { return hostMemory(); }
  // How nodes are lowered for it, and whether fusion makes sense.
  virtual ir::Lowering lowering() const = 0;
  // The target that code is generated for; only for Lowering::Kernels.
  virtual ir::Target target() const = 0;
  virtual bool supportsLibrary(ir::Op op, const std::vector<ir::ValueType>& operands,
                               const ir::Attrs& attrs, const ir::ValueType& result) const = 0;
  // Whether it has attention of heads with their features first.
  virtual bool takesFeaturesFirst() const { return true; }
  // For planning. They may be kept.
  virtual ir::DeviceTraits traits() const { return {}; }
  // Steps of a schedule that was planned without it get their scratch memory here.
  virtual std::unique_ptr<LoadedSchedule> load(ir::Schedule schedule, KernelCache* cache) = 0;
};

// Throws std::invalid_argument naming the devices that exist.
std::unique_ptr<Device> makeDevice(const std::string& name);

}  // namespace fl::runtime
