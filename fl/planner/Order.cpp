#include "fl/planner/Order.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "fl/base/Error.h"
#include "fl/base/Log.h"
#include "fl/planner/Extensions.h"
#include "fl/planner/Memory.h"
#include "fl/planner/Planner.h"
#include "fl/planner/Reuse.h"

namespace fl::planner {
namespace {

// Beyond so many uses of temporaries and of steps by one another, at about a hundred of them a
// millisecond and order, the recorded order stands.
constexpr size_t kMostUses = 200'000;
// Of breadth first.
constexpr size_t kWidth = 8;

using StepList = std::vector<int>;

// What orders need to know of a schedule.
struct Steps {
  explicit Steps(const ir::Schedule& schedule)
      : before(dependencies(schedule)), after(before.size()), users(schedule.temporaries.size()) {
    for (const auto& each : schedule.temporaries) bytes.push_back(static_cast<int64_t>(each.bytes));
    for (int i = 0; i < std::ssize(schedule.steps); ++i) {
      touches.push_back(temporariesOf(schedule, schedule.steps[i]));
      for (int temporary : touches[i]) users[temporary].push_back(i);
      for (int earlier : before[i]) after[earlier].push_back(i);
      uses += before[i].size() + touches[i].size();
    }
  }

  size_t size() const { return before.size(); }

  std::vector<std::vector<int>> before, after;
  std::vector<std::vector<int>> touches;  // of each step: the temporaries it uses
  std::vector<std::vector<int>> users;    // of each temporary
  std::vector<int64_t> bytes;             // of each temporary
  size_t uses = 0;                        // of steps and temporaries
};

// The most bytes that are alive at one step.
int64_t peakOf(const Steps& steps, const StepList& order) {
  std::vector<int> places(order.size());
  for (int i = 0; i < std::ssize(order); ++i) places[order[i]] = i;
  std::vector<Interval> lives;
  for (size_t i = 0; i < steps.users.size(); ++i) {
    if (steps.users[i].empty()) continue;
    const auto place = [&](int step) { return places[step]; };
    const auto [first, last] = std::ranges::minmax(steps.users[i], {}, place);
    lives.push_back({static_cast<size_t>(steps.bytes[i]), places[first], places[last]});
  }
  return static_cast<int64_t>(lowerBound(lives));
}

// Of an order that comes from outside.
void checkOrder(const Steps& steps, const StepList& order) {
  FL_INTERNAL_CHECK(order.size() == steps.size(), order.size(), " steps of ", steps.size());
  std::vector<bool> done(steps.size(), false);
  for (int step : order) {
    const bool isNew = step >= 0 && step < std::ssize(steps.before) && !done[step];
    FL_INTERNAL_CHECK(isNew, "step ", step, " is none, or comes twice");
    for (int earlier : steps.before[step])
      FL_INTERNAL_CHECK(done[earlier], "step ", step, " before step ", earlier);
    done[step] = true;
  }
}

// Of the steps that may run next, the one by which the least memory becomes alive.
class GreedyOrder {
 public:
  explicit GreedyOrder(const Steps& steps) : steps_(steps), growth_(steps.size(), 0) {
    for (size_t temporary = 0; temporary < steps.users.size(); ++temporary) {
      uses_.push_back(steps.users[temporary].size());
      grow(static_cast<int>(temporary), uses_.back() == 1 ? 0 : steps.bytes[temporary]);
    }
  }

  StepList run() {
    std::vector<size_t> waiting(steps_.size());
    std::ranges::transform(steps_.before, waiting.begin(), &std::vector<int>::size);
    for (size_t i = 0; i < waiting.size(); ++i)
      if (waiting[i] == 0) ready_.emplace(growth_[i], static_cast<int>(i));
    StepList order;
    while (!ready_.empty()) {
      const int step = ready_.begin()->second;  // of equal ones, that recorded first
      ready_.erase(ready_.begin());
      order.push_back(step);
      finish(step);
      for (int next : steps_.after[step])
        if (--waiting[next] == 0) ready_.emplace(growth_[next], next);
    }
    return order;
  }

 private:
  // The steps that use it make so many bytes more alive.
  void grow(int temporary, int64_t bytes) {
    for (int step : steps_.users[temporary]) {
      const bool isReady = ready_.erase({growth_[step], step}) > 0;
      growth_[step] += bytes;
      if (isReady) ready_.emplace(growth_[step], step);
    }
  }

  void finish(int step) {
    for (int temporary : steps_.touches[step]) {
      const int64_t bytes = steps_.bytes[temporary];
      if (uses_[temporary] == steps_.users[temporary].size()) grow(temporary, -bytes);
      if (--uses_[temporary] == 1) grow(temporary, -bytes);
    }
  }

  const Steps& steps_;
  // Of each step: bytes that become alive by it less those that die with it.
  std::vector<int64_t> growth_;
  std::set<std::pair<int64_t, int>> ready_;  // growth and step
  std::vector<size_t> uses_;                 // of each temporary: users that are not done
};

// Level by level, of at most kWidth steps that may run; the others, in the order recorded, wait
// until there is room, so that a wide level is taken in strips.
StepList breadthFirstOrder(const Steps& steps) {
  std::vector<size_t> missing(steps.size());
  std::ranges::transform(steps.before, missing.begin(), &std::vector<int>::size);
  std::set<int> waiting;
  for (size_t i = 0; i < missing.size(); ++i)
    if (missing[i] == 0) waiting.insert(static_cast<int>(i));
  StepList order;
  for (size_t open = 0; order.size() > open || !waiting.empty();) {
    for (; order.size() - open < kWidth && !waiting.empty(); waiting.erase(waiting.begin()))
      order.push_back(*waiting.begin());
    for (int next : steps.after[order[open++]]) {
      if (--missing[next] > 0) continue;
      order.size() - open < kWidth ? order.push_back(next) : void(waiting.insert(next));
    }
  }
  return order;
}

// What a step needs runs right before it, and of that what takes the most memory first, as with
// registers (R. Sethi and J. Ullman, "The generation of optimal code for arithmetic expressions",
// 1970).
StepList depthFirstOrder(const Steps& steps) {
  std::vector<std::vector<int>> before = steps.before;
  // Bytes that are alive at once while a step and all it needs are computed, and those left then.
  std::vector<int64_t> needed(steps.size(), 0), left(steps.size(), 0), made(steps.size(), 0);
  for (size_t temporary = 0; temporary < steps.users.size(); ++temporary) {
    const std::vector<int>& users = steps.users[temporary];
    if (!users.empty()) made[users[0]] += steps.bytes[temporary];
    if (users.size() > 1) left[users[0]] += steps.bytes[temporary];  // and no scratch memory
  }
  for (size_t step = 0; step < steps.size(); ++step) {
    std::ranges::stable_sort(before[step], std::greater(),
                             [&](int i) { return needed[i] - left[i]; });
    int64_t held = 0;
    for (int earlier : before[step]) {
      needed[step] = std::max(needed[step], held + needed[earlier]);
      held += left[earlier];
    }
    needed[step] = std::max(needed[step], held + made[step]);
  }
  StepList order;
  std::vector<bool> isSeen(steps.size(), false);
  std::vector<std::pair<int, size_t>> open;  // a step and how much of what it needs
  for (int last = 0; last < std::ssize(steps.after); ++last) {
    if (steps.after[last].empty()) open.emplace_back(last, 0);
    while (!open.empty()) {
      auto& [step, next] = open.back();
      if (next == before[step].size()) {
        order.push_back(step);
        open.pop_back();
      } else if (const int earlier = before[step][next++]; !isSeen[earlier]) {
        isSeen[earlier] = true;
        open.emplace_back(earlier, 0);
      }
    }
  }
  return order;
}

}  // namespace

std::vector<std::vector<int>> dependencies(const ir::Schedule& schedule) {
  struct Users {
    int writer = -1;
    std::vector<int> readers;  // since then
  };
  using Space = ir::BufferRef::Space;
  // By space, of which that of parameters is 0.
  std::vector<Users> users[] = {std::vector<Users>(schedule.parameters.size()),
                                std::vector<Users>(schedule.outputs.size()),
                                std::vector<Users>(schedule.temporaries.size())};
  // An output that is over a parameter may be in its buffer.
  const auto usersOf = [&](const ir::BufferRef& ref) -> Users& {
    const int over = ref.space == Space::Output ? schedule.outputs[ref.index].over : -1;
    return over < 0 ? users[static_cast<int>(ref.space)][ref.index] : users[0][over];
  };
  const std::vector<std::vector<int>> reusable = reusableParameters(schedule);
  std::vector<std::vector<int>> before(schedule.steps.size());
  std::vector<int> failing;
  for (int i = 0; i < std::ssize(schedule.steps); ++i) {
    const ir::StepBuffers buffers = stepBuffers(schedule, schedule.steps[i]);
    const auto after = [&](int step) {
      if (step >= 0 && step != i) before[i].push_back(step);
    };
    for (const ir::BufferRef& ref : buffers.reads) {
      after(usersOf(ref).writer);
      usersOf(ref).readers.push_back(i);
    }
    for (const ir::BufferRef& ref : buffers.writes) {
      after(usersOf(ref).writer);
      std::ranges::for_each(usersOf(ref).readers, after);
      usersOf(ref) = {i, {}};
      if (ref.space != Space::Output) continue;
      for (int parameter : reusable[ref.index]) {
        std::ranges::for_each(users[0][parameter].readers, after);
        std::ranges::for_each(failing, after);
      }
    }
    if (mayFail(schedule.steps[i])) failing.push_back(i);
    std::sort(before[i].begin(), before[i].end());
    before[i].erase(std::unique(before[i].begin(), before[i].end()), before[i].end());
  }
  return before;
}

std::vector<Order> ordersOf(const ir::Schedule& schedule) {
  std::vector<Order> orders;
  const Steps steps(schedule);
  const auto add = [&](const std::string& name, const StepList& order) {
    orders.push_back({name, order, peakOf(steps, order)});
  };
  StepList recorded(steps.size());
  std::iota(recorded.begin(), recorded.end(), 0);
  add("recorded", recorded);
  if (steps.uses <= kMostUses && !schedule.temporaries.empty()) {
    add("greedy", GreedyOrder(steps).run());
    add("breadth first", breadthFirstOrder(steps));
    add("depth first", depthFirstOrder(steps));
    for (const OrderExtension& other : *planner::orders().all()) {
      StepList order = other.order(schedule);
      planner::orders().blame(other.name, [&] { checkOrder(steps, order); });
      add(other.name, order);
    }
  }
  return orders;
}

void reorder(const Order& order, ir::Schedule* schedule) {
  std::vector<ir::Step> steps;
  for (int step : order.steps) steps.push_back(std::move(schedule->steps[step]));
  schedule->steps = std::move(steps);
  computeLifetimes(schedule);
}

void orderSteps(ir::Schedule* schedule) {
  computeLifetimes(schedule);
  schedule->recordedBound = schedule->arenaBound;
  schedule->unplannedBytes = 0;
  for (const ir::Temporary& each : schedule->temporaries) schedule->unplannedBytes += each.bytes;
  const std::vector<Order> orders = ordersOf(*schedule);
  std::string peaks = "bytes alive at most:";
  for (const Order& order : orders) absl::StrAppend(&peaks, " ", order.name, " ", order.peak);
  if (orders.size() == 1 && orders[0].peak > 0) peaks += ", and no other of so many uses";
  logLine(3, peaks);
  const auto lowest = std::ranges::min_element(orders, {}, &Order::peak);
  if (lowest != orders.begin()) reorder(*lowest, schedule);
}

}  // namespace fl::planner
