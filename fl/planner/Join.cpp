// Brings launches of one kernel that do not need one another together: a device runs neighbours as
// one launch, so that the update of all parameters, which is many small maps, costs one, and as
// many norms another.
#include <algorithm>
#include <map>
#include <set>

#include "fl/planner/Memory.h"
#include "fl/planner/Order.h"
#include "fl/planner/Planner.h"

namespace fl::planner {
namespace {

// What a temporary of one number takes: little enough for all of them to be alive at once.
constexpr size_t kNumberBytes = 64;
// So many times fewer of them are alive where all would be too many.
constexpr size_t kFewer = 4;

bool isNumber(const ir::Temporary& temporary) { return temporary.bytes <= kNumberBytes; }

// Puts steps off until one that is not put off needs them, if others launch their kernel as well:
// those that write results of the plan alone, and those that make numbers of what is kept anyway.
class Joining {
 public:
  // What waits uses that many bytes of numbers at most.
  Joining(const ir::Schedule& schedule, const std::vector<std::vector<int>>& before, size_t most)
      : schedule_(schedule), before_(before), most_(most), level_(schedule.steps.size(), -1) {
    for (const ir::Step& step : schedule.steps) {
      buffers_.push_back(stepBuffers(schedule, step));
      for (const ir::BufferRef& ref : buffers_.back().writes) ++writers_[ref];
    }
    for (int i = 0; i < std::ssize(schedule.steps); ++i) {
      kernels_.push_back(isPartOfCall(i) ? -1 : kernelOf(i));
      if (kernels_[i] >= 0) ++users_[kernels_[i]];
      numbers_.push_back(temporariesOf(schedule, schedule.steps[i]));
      std::erase_if(numbers_[i], [&](int used) { return !isNumber(schedule.temporaries[used]); });
    }
  }

  // The new order.
  const std::vector<int>& run() {
    for (int i = 0; i < std::ssize(kernels_); ++i) {
      const bool waits = kernels_[i] >= 0 && users_[kernels_[i]] > 1;
      waits ? wait(i) : emitWithNeeded(i);
    }
    emitAll();
    return order_;
  }

  // What one step of a launch reads must not become the memory of what another one writes.
  void keepNumbersApart(ir::Schedule* joined) const {
    for (const auto& [first, last] : launches_)
      for (int i = first; i <= last; ++i)
        for (int used : numbers_[order_[i]]) {
          ir::Temporary& number = joined->temporaries[used];
          number.first = std::min(number.first, first);
          number.last = std::max(number.last, last);
        }
    joined->arenaBound = mostAlive(*joined);
  }

 private:
  // A level and a kernel: steps of a level need those of lower levels at most.
  using Group = std::pair<int, int>;

  // Of launches that can be put off; -1 for other steps.
  int kernelOf(int step) const {
    const auto* launch = std::get_if<ir::LaunchStep>(&schedule_.steps[step]);
    // What may find a bad index runs alone.
    if (!launch || schedule_.kernels[launch->kernel].gatherCount() > 0) return -1;
    using Space = ir::BufferRef::Space;
    const auto isResult = [](const auto& ref) { return ref.space == Space::Output; };
    const auto isKept = [&](const auto& ref) {
      return ref.space != Space::Temporary || isNumber(schedule_.temporaries[ref.index]);
    };
    const ir::StepBuffers& buffers = buffers_[step];
    const bool waits =
        std::ranges::all_of(buffers.writes, isResult) ||
        (std::ranges::all_of(buffers.writes, isKept) && std::ranges::all_of(buffers.reads, isKept));
    return waits ? launch->kernel : -1;
  }

  // What makes a part of a result does not run together with what makes others; behind a call it
  // may be its epilogue.
  bool isPartOfCall(int step) const {
    const auto* launch = std::get_if<ir::LaunchStep>(&schedule_.steps[step]);
    const auto* call =
        step > 0 ? std::get_if<ir::LibraryStep>(&schedule_.steps[step - 1]) : nullptr;
    return call && launch && fitsAsEpilogue(schedule_, *launch, *call) &&
           writers_.at(buffers_[step].writes[0]) > 1;
  }

  void wait(int step) {
    held_ += bytesOfNumbers(step);
    if (held_ > most_) emitAll();
    int level = 0;
    for (int earlier : before_[step]) level = std::max(level, level_[earlier] + 1);
    level_[step] = level;
    waiting_[{level, kernels_[step]}].push_back(step);
  }

  // A step, behind the groups that it needs, with those that they need.
  void emitWithNeeded(int step) {
    std::set<Group> needed;
    std::vector<int> open = {step};
    while (!open.empty()) {
      const int next = open.back();
      open.pop_back();
      for (int earlier : before_[next]) {
        if (level_[earlier] < 0) continue;
        const Group group{level_[earlier], kernels_[earlier]};
        if (needed.insert(group).second)
          open.insert(open.end(), waiting_[group].begin(), waiting_[group].end());
      }
    }
    for (const Group& group : needed) emit(group);
    order_.push_back(step);
  }

  void emitAll() {
    while (!waiting_.empty()) emit(waiting_.begin()->first);
  }

  size_t bytesOfNumbers(int step) const {
    size_t bytes = 0;
    for (int number : numbers_[step]) bytes += schedule_.temporaries[number].bytes;
    return bytes;
  }

  void emit(Group group) {
    const int begin = static_cast<int>(order_.size());
    for (int step : waiting_[group]) {
      level_[step] = -1;
      order_.push_back(step);
      held_ -= bytesOfNumbers(step);
    }
    waiting_.erase(group);
    launches_.push_back({begin, static_cast<int>(order_.size()) - 1});
  }

  const ir::Schedule& schedule_;
  const std::vector<std::vector<int>>& before_;
  const size_t most_;
  size_t held_ = 0;                            // bytes of numbers that what waits uses
  std::vector<ir::StepBuffers> buffers_;       // of each step
  std::vector<int> kernels_;                   // of each step: kernelOf
  std::vector<std::vector<int>> numbers_;      // of each step: those that it uses
  std::map<int, int> users_;                   // by kernel
  std::map<ir::BufferRef, int> writers_;       // steps, or parts in one
  std::map<Group, std::vector<int>> waiting_;  // lower levels first
  std::vector<int> level_;                     // by step, -1 unless it waits
  std::vector<int> order_;
  std::vector<std::pair<int, int>> launches_;  // the first and last step of each
};

}  // namespace

void joinLaunches(ir::Schedule* schedule) {
  const std::vector<std::vector<int>> before = dependencies(*schedule);
  const size_t least = schedule->arenaBound;
  size_t numbers = 0;
  for (const ir::Temporary& each : schedule->temporaries)
    numbers += isNumber(each) ? each.bytes : 0;
  // That there is one launch for many is worth a part of the plan's memory.
  const size_t budget = schedule->budget > 0 ? schedule->budget : SIZE_MAX;
  const size_t allowed = std::max(least, std::min(schedule->recordedBound, budget));
  const std::vector<ir::Temporary> temporaries = schedule->temporaries;
  // Fewer at once where all together would take more than that.
  for (size_t held = SIZE_MAX; held > 0; held = std::min(held, numbers) / kFewer) {
    Joining joining(*schedule, before, held);
    const Order order = {"joined", joining.run(), 0};
    reorder(order, schedule);
    joining.keepNumbersApart(schedule);
    if (schedule->arenaBound <= std::min(least + least / 32 + numbers, allowed)) return;
    Order back = order;
    for (int i = 0; i < std::ssize(order.steps); ++i) back.steps[order.steps[i]] = i;
    reorder(back, schedule);
    schedule->temporaries = temporaries;
    schedule->arenaBound = least;
  }
}

}  // namespace fl::planner
