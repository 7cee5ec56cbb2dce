// Launches that take each element of a library call's result once, in order, become its epilogue: a
// device may run them on a part of the result while it is in the caches of the thread that made it.
#include <numeric>

#include "fl/planner/Memory.h"
#include "fl/planner/Planner.h"

namespace fl::planner {
namespace {

// Temporaries that only the call keeps alive; they must outlive what the epilogue writes.
std::vector<int> lastReadBy(const ir::Schedule& schedule, int step) {
  std::vector<int> found;
  for (const ir::BufferRef& ref : stepBuffers(schedule, schedule.steps[step]).reads) {
    if (ref.space == ir::BufferRef::Space::Temporary &&
        schedule.temporaries[ref.index].last == step && std::ranges::count(found, ref.index) == 0) {
      found.push_back(ref.index);
    }
  }
  return found;
}

}  // namespace

void attachEpilogues(ir::Schedule* schedule) {
  const std::vector<int64_t> alive = bytesAlive(*schedule);
  for (int i = 1; i < std::ssize(schedule->steps); ++i) {
    const auto* call = std::get_if<ir::LibraryStep>(&schedule->steps[i - 1]);
    auto* launch = std::get_if<ir::LaunchStep>(&schedule->steps[i]);
    if (!call || !launch || !fitsAsEpilogue(*schedule, *launch, *call)) {
      continue;
    }
    const std::vector<int> kept = lastReadBy(*schedule, i - 1);
    const int64_t bytes =
        std::accumulate(kept.begin(), kept.end(), alive[i], [&](int64_t sum, int t) {
          return sum + static_cast<int64_t>(schedule->temporaries[t].bytes);
        });
    if (bytes > static_cast<int64_t>(schedule->arenaBound)) {
      continue;
    }
    launch->epilogue = true;
    for (int temporary : kept) {
      schedule->temporaries[temporary].last = i;
    }
  }
}

}  // namespace fl::planner
