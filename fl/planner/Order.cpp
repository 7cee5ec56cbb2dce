// Orders steps so that less memory is alive at once. Tries a greedy order by bytes freed and keeps
// it only if its peak is below the recorded order's.
#include <algorithm>

#include "fl/planner/Dependencies.h"
#include "fl/planner/Memory.h"
#include "fl/planner/Planner.h"

namespace fl::planner {
namespace {

// The greedy choice looks at all ready steps; beyond this many steps the recorded order stands.
constexpr size_t kMaxOrderedSteps = 4000;

class GreedyOrder {
 public:
  explicit GreedyOrder(const ir::Schedule& schedule)
      : schedule_(schedule),
        uses_(schedule.temporaries.size(), 0),
        alive_(schedule.temporaries.size(), false) {
    for (const ir::Step& step : schedule.steps) {
      for (int temporary : temporariesOf(step)) {
        ++uses_[temporary];
      }
    }
  }

  std::vector<int> run() {
    const auto before = dependencies(schedule_);
    std::vector<std::vector<int>> after(before.size());
    std::vector<int> waiting(before.size());
    std::vector<int> ready, order;
    for (size_t i = 0; i < before.size(); ++i) {
      waiting[i] = static_cast<int>(before[i].size());
      for (int step : before[i]) {
        after[step].push_back(static_cast<int>(i));
      }
      if (before[i].empty()) {
        ready.push_back(static_cast<int>(i));
      }
    }
    while (!ready.empty()) {
      // Ties go to the step recorded first.
      const auto best = std::min_element(ready.begin(), ready.end(), [&](int a, int b) {
        return std::pair(growth(a), a) < std::pair(growth(b), b);
      });
      const int step = *best;
      ready.erase(best);
      order.push_back(step);
      finish(step);
      for (int next : after[step]) {
        if (--waiting[next] == 0) {
          ready.push_back(next);
        }
      }
    }
    return order;
  }

 private:
  std::vector<int> temporariesOf(const ir::Step& step) const {
    std::vector<int> temporaries;
    const ir::StepBuffers buffers = stepBuffers(schedule_, step);
    for (const auto* refs : {&buffers.reads, &buffers.writes}) {
      for (const ir::BufferRef& ref : *refs) {
        if (ref.space == ir::BufferRef::Space::Temporary) {
          temporaries.push_back(ref.index);
        }
      }
    }
    std::sort(temporaries.begin(), temporaries.end());
    temporaries.erase(std::unique(temporaries.begin(), temporaries.end()), temporaries.end());
    return temporaries;
  }

  // Bytes that become alive by this step less those that die with it.
  int64_t growth(int step) const {
    int64_t bytes = 0;
    for (int temporary : temporariesOf(schedule_.steps[step])) {
      const auto size = static_cast<int64_t>(schedule_.temporaries[temporary].bytes);
      bytes += alive_[temporary] ? 0 : size;
      bytes -= uses_[temporary] == 1 ? size : 0;
    }
    return bytes;
  }

  void finish(int step) {
    for (int temporary : temporariesOf(schedule_.steps[step])) {
      alive_[temporary] = true;
      --uses_[temporary];
    }
  }

  const ir::Schedule& schedule_;
  std::vector<int> uses_;
  std::vector<bool> alive_;
};

}  // namespace

void orderSteps(ir::Schedule* schedule) {
  computeLifetimes(schedule);
  if (schedule->steps.size() > kMaxOrderedSteps || schedule->temporaries.empty()) {
    return;
  }
  ir::Schedule reordered = *schedule;
  reordered.steps.clear();
  for (int step : GreedyOrder(*schedule).run()) {
    reordered.steps.push_back(schedule->steps[step]);
  }
  computeLifetimes(&reordered);
  if (reordered.arenaBound < schedule->arenaBound) {
    *schedule = std::move(reordered);
  }
}

}  // namespace fl::planner
