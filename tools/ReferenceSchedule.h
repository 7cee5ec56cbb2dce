// Runs the schedules of a compiling device by the references: kernels number by number
// (tools/reference/KernelReference.h), primitive calls by the interpreter of graphs, calls of
// libraries by their definitions on the device `ref`. It is what `fl run` compares schedules with.
#pragma once

#include "fl/runtime/ScheduleRunner.h"

namespace fl::tools {

class ReferenceSchedule : public runtime::ScheduleRunner {
 public:
  // Without `runs` it does nothing, and results are 0.
  ReferenceSchedule(ir::Schedule schedule, bool runs)
      : ScheduleRunner(std::move(schedule)), runs_(runs) {}

 protected:
  void runSteps(const Frame& frame) const override;

 private:
  void clearOutputs(const Frame& frame) const;
  void runLaunch(const ir::LaunchStep& launch, const Frame& frame) const;
  void runDefinition(const ir::LibraryStep& call, const Frame& frame) const;

  const bool runs_;
};

}  // namespace fl::tools
