// Brings launches of one kernel that do not need one another together: a device runs neighbours as
// one launch, so that the update of all parameters, which is many small maps, costs one.
#include <algorithm>
#include <map>

#include "fl/codegen/Dependencies.h"
#include "fl/codegen/Memory.h"
#include "fl/codegen/Passes.h"

namespace fl::codegen {
namespace {

// Puts steps off until another needs them: those that write results of the plan alone, whose kernel
// others launch for that as well.
class Joining {
 public:
  explicit Joining(const ir::Schedule& schedule)
      : schedule_(schedule), before_(dependencies(schedule)), waits_(schedule.steps.size(), false) {
    for (const ir::Step& step : schedule.steps) {
      if (const int kernel = kernelOf(step); kernel >= 0) {
        ++launches_[kernel];
      }
    }
  }

  std::vector<int> run() {
    for (int i = 0; i < std::ssize(schedule_.steps); ++i) {
      for (int earlier : before_[i]) {
        if (waits_[earlier]) {
          emitWaiting(kernelOf(schedule_.steps[earlier]));
        }
      }
      const int kernel = kernelOf(schedule_.steps[i]);
      if (kernel >= 0 && launches_[kernel] > 1) {
        waiting_[kernel].push_back(i);
        waits_[i] = true;
      } else {
        order_.push_back(i);
      }
    }
    while (!waiting_.empty()) {
      emitWaiting(waiting_.begin()->first);
    }
    return std::move(order_);
  }

 private:
  // Of launches that write nothing but results; -1 for other steps.
  int kernelOf(const ir::Step& step) const {
    const auto* launch = std::get_if<ir::LaunchStep>(&step);
    // What may find a bad index runs alone.
    const bool writesResults =
        launch && schedule_.kernels[launch->kernel].gatherCount() == 0 &&
        std::ranges::all_of(stepBuffers(schedule_, step).writes, [](const auto& ref) {
          return ref.space == ir::BufferRef::Space::Output;
        });
    return writesResults ? launch->kernel : -1;
  }

  void emitWaiting(int kernel) {
    for (int step : waiting_[kernel]) {
      waits_[step] = false;
      order_.push_back(step);
    }
    waiting_.erase(kernel);
  }

  const ir::Schedule& schedule_;
  const std::vector<std::vector<int>> before_;
  std::map<int, int> launches_;              // by kernel
  std::map<int, std::vector<int>> waiting_;  // by kernel
  std::vector<bool> waits_;                  // by step
  std::vector<int> order_;
};

}  // namespace

void joinLaunches(Compilation& compilation) {
  ir::Schedule& schedule = compilation.schedule;
  ir::Schedule joined = schedule;
  joined.steps.clear();
  for (int step : Joining(schedule).run()) {
    joined.steps.push_back(schedule.steps[step]);
  }
  computeLifetimes(&joined);
  if (joined.arenaBound <= schedule.arenaBound) {
    schedule = std::move(joined);
  }
}

}  // namespace fl::codegen
