// What profiles, perf and gdb call the steps of plans.
#pragma once

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "fl/base/ForkSafeMutex.h"
#include "fl/kernel/Schedule.h"
#include "fl/profile/Profile.h"
#include "fl/runtime/Device.h"

namespace fl::runtime {

// "map mul+add+tanh 09f8ac21", "rows sub+exp+sum 5be0c4d7": the kind of the kernel (rows and
// columns reduce), its operators in order, casts left out, and a hash of its text, by which kernels
// of the same operators differ, and one kernel is called the same in every process.
std::string kernelLabel(const ir::Kernel& kernel);

// The labels of one plan, made when it runs under a profile for the first time. Thread-safe.
class StepLabels {
 public:
  // Of steps [begin, end), which run together: launches of one kernel, or a call and its epilogue.
  profile::Label* of(const ir::Schedule& schedule, size_t begin, size_t end);
  // Of a whole run.
  profile::Label* ofRun(const ir::Schedule& schedule);

 private:
  static inline ForkSafeMutex mutex_;
  // By the first step and the line; that of the run is behind the last step. Caches have none of it
  // when a step has run, so that each place that a look-up goes to is a wait for memory.
  absl::flat_hash_map<std::pair<size_t, const void*>, profile::Label*> labels_;
};

// Adds one run and its steps to the profile, and hands the steps on to `next`, if that is one.
class ProfiledRun final : public StepObserver {
 public:
  ProfiledRun(const ir::Schedule& schedule, StepLabels& labels, StepObserver* next)
      : schedule_(schedule), labels_(labels), next_(next) {}
  ~ProfiledRun() override { profile::add(labels_.ofRun(schedule_), begin_, profile::now()); }
  void afterSteps(size_t begin, size_t end, const StepMemory& memory) override;

 private:
  const ir::Schedule& schedule_;
  StepLabels& labels_;
  StepObserver* const next_;
  const int64_t begin_ = profile::now();
  int64_t last_ = begin_;
};

}  // namespace fl::runtime
