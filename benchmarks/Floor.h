// The floor of a workload: what its plan costs if its library calls run alone, one after the other,
// and its kernels at the rate of a copy.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/Subject.h"
#include "benchmarks/Workload.h"
#include "fl/kernel/Schedule.h"
#include "fl/runtime/Device.h"

namespace fl::bench {

// Has every plan that first calls of `workload` make on the lazy backend dumped (FL_DUMP) below
// `folder`.
void dumpPlans(const Workload& workload, const std::filesystem::path& folder);
// The last of them, that of its steady calls, which have one; as the schedule pass `stage` leaves
// it, or the last one.
ir::Schedule steadyPlan(const Workload& workload, const std::string& stage = "");

class Floor {
 public:
  explicit Floor(const ir::Schedule& plan);
  void block();
  double microseconds() const;

 private:
  // Equal calls are timed once.
  struct Call {
    std::string text;
    Subject subject;
    int count = 0;
  };

  Call& callFor(const ir::LibraryStep& step);
  Subject alone(const ir::LibraryStep& step);

  std::unique_ptr<runtime::Device> device_;
  runtime::KernelCache kernels_;
  std::vector<Call> calls_;
  double bytes_ = 0;  // of the kernels
  CopyLimit copy_;
};

}  // namespace fl::bench
