// Launches that take each element of a library call's result once, in order, become its epilogue: a
// device may run them on a part of the result while it is in the caches of the thread that made it.
#include <algorithm>

#include "fl/planner/Memory.h"
#include "fl/planner/Planner.h"
#include "fl/planner/Reuse.h"

namespace fl::planner {
namespace {

// Whether a run may write a result of the launch over a parameter that the call reads.
bool writesOverOperand(const ir::Schedule& schedule, int launch,
                       const std::vector<std::vector<int>>& reusable) {
  using Space = ir::BufferRef::Space;
  const ir::StepBuffers call = stepBuffers(schedule, schedule.steps[launch - 1]);
  for (const ir::BufferRef& ref : stepBuffers(schedule, schedule.steps[launch]).writes)
    for (int parameter : ref.space == Space::Output ? reusable[ref.index] : std::vector<int>())
      if (std::ranges::count(call.reads, ir::BufferRef{Space::Parameter, parameter})) return true;
  return false;
}

}  // namespace

void attachEpilogues(ir::Schedule* schedule) {
  const std::vector<int64_t> alive = bytesAlive(*schedule);
  const std::vector<std::vector<int>> reusable = reusableParameters(*schedule);
  for (int i = 1; i < std::ssize(schedule->steps); ++i) {
    const auto* call = std::get_if<ir::LibraryStep>(&schedule->steps[i - 1]);
    auto* launch = std::get_if<ir::LaunchStep>(&schedule->steps[i]);
    if (!call || isMove(*schedule, *call) || !launch ||
        !fitsAsEpilogue(*schedule, *launch, *call) || writesOverOperand(*schedule, i, reusable))
      continue;
    // What only the call keeps alive must outlive what the epilogue writes.
    std::vector<int> kept = temporariesOf(*schedule, schedule->steps[i - 1]);
    std::erase_if(kept, [&](int used) { return schedule->temporaries[used].last >= i; });
    auto bytes = static_cast<size_t>(alive[i]);
    for (int temporary : kept) bytes += schedule->temporaries[temporary].bytes;
    if (bytes > schedule->arenaBound) continue;
    launch->epilogue = true;
    for (int temporary : kept) schedule->temporaries[temporary].last = i;
  }
  addScratch(schedule);
}

}  // namespace fl::planner
