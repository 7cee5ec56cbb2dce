// Orders steps so that less memory is alive at once. Tries a greedy order by bytes freed and keeps
// it only if its peak is below the recorded order's.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "fl/planner/Dependencies.h"
#include "fl/planner/Memory.h"
#include "fl/planner/Planner.h"

namespace fl::planner {
namespace {

// Beyond this many steps the recorded order stands.
constexpr size_t kMaxOrderedSteps = 4000;

class GreedyOrder {
 public:
  explicit GreedyOrder(const ir::Schedule& schedule)
      : schedule_(schedule),
        growth_(schedule.steps.size(), 0),
        users_(schedule.temporaries.size()),
        alive_(schedule.temporaries.size(), false) {
    for (size_t i = 0; i < schedule.steps.size(); ++i) {
      touches_.push_back(temporariesOf(schedule.steps[i]));
      for (int temporary : touches_[i]) {
        users_[temporary].push_back(static_cast<int>(i));
      }
    }
    for (size_t temporary = 0; temporary < users_.size(); ++temporary) {
      uses_.push_back(users_[temporary].size());
      grow(static_cast<int>(temporary), uses_.back() == 1 ? 0 : sizeOf(temporary));
    }
  }

  std::vector<int> run() {
    const auto before = dependencies(schedule_);
    std::vector<std::vector<int>> after(before.size());
    std::vector<int> waiting(before.size()), order;
    for (size_t i = 0; i < before.size(); ++i) {
      const int step = static_cast<int>(i);
      waiting[i] = static_cast<int>(before[i].size());
      for (int earlier : before[i]) {
        after[earlier].push_back(step);
      }
      if (before[i].empty()) {
        ready_.emplace(growth_[i], step);
      }
    }
    while (!ready_.empty()) {
      // Ties go to the step recorded first.
      const int step = ready_.extract(ready_.begin()).value().second;
      order.push_back(step);
      finish(step);
      for (int next : after[step]) {
        if (--waiting[next] == 0) {
          ready_.emplace(growth_[next], next);
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

  int64_t sizeOf(size_t temporary) const {
    return static_cast<int64_t>(schedule_.temporaries[temporary].bytes);
  }

  // The steps that use it make so many bytes more alive.
  void grow(int temporary, int64_t bytes) {
    for (int step : users_[temporary]) {
      const bool isReady = ready_.erase({growth_[step], step}) > 0;
      growth_[step] += bytes;
      if (isReady) {
        ready_.emplace(growth_[step], step);
      }
    }
  }

  void finish(int step) {
    for (int temporary : touches_[step]) {
      if (!alive_[temporary]) {
        alive_[temporary] = true;
        grow(temporary, -sizeOf(temporary));
      }
      if (--uses_[temporary] == 1) {
        grow(temporary, -sizeOf(temporary));
      }
    }
  }

  const ir::Schedule& schedule_;
  std::vector<std::vector<int>> touches_;  // of each step: the temporaries it uses
  // Of each step: bytes that become alive by it less those that die with it.
  std::vector<int64_t> growth_;
  std::set<std::pair<int64_t, int>> ready_;  // growth and step
  std::vector<std::vector<int>> users_;      // of each temporary
  std::vector<size_t> uses_;                 // those of them that are not done
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
