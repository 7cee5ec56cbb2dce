// Keeps the arena within a budget, by whichever order and plan of what is computed again
// (Rematerialization.h) takes the least time; and without one, to less memory where that takes
// hardly more.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "fl/base/Log.h"
#include "fl/planner/Memory.h"
#include "fl/planner/Order.h"
#include "fl/planner/Planner.h"
#include "fl/planner/Rematerialization.h"

namespace fl::planner {
namespace {

// The part of a plan's time that less memory is worth without a budget, and the bytes from which on
// it is.
constexpr double kFreeShare = 0.03;
constexpr int64_t kWorthTrimming = 1 << 20;
// So many values in memory are looked at for the cheapest, at most, by trimming, by each try within
// a budget and to name one; trimming more steps than that, what is alive stands for the arena.
constexpr int64_t kMostTrimming = 2'000'000, kMostSearching = 50'000'000, kMostNaming = 400'000'000;
constexpr size_t kMostPacked = 2000;
// Packing wastes some bytes, so that values may have to take less than the budget: by what the
// arena exceeds it, and by this part of it at least, so many times at most.
constexpr size_t kTries = 12, kLeastExcess = 256;
// The budget that a refusal names is so near to one that is not met.
constexpr size_t kNearLeast = 128;

// What the rest of the passes makes of it.
size_t arenaOf(ir::Schedule schedule) {
  joinLaunches(&schedule);
  shareMemory(&schedule);
  attachEpilogues(&schedule);
  placeTemporaries(&schedule);
  return schedule.arenaBytes;
}

// Without a budget: the least memory that takes hardly more time.
void trim(ir::Schedule* schedule) {
  const auto peak = static_cast<int64_t>(mostAlive(*schedule));
  if (peak < kWorthTrimming) return;
  const Values values(*schedule);
  const double total = std::accumulate(values.costs.begin(), values.costs.end(), 0.0);
  Limits limits{kFreeShare * total, kMostTrimming};
  std::optional<Rematerialization> best;
  // Ever less until there is no way, then between that and the least: what takes less time first.
  int64_t low = 0, high = peak;
  for (int64_t cut = peak / 16; high - low > peak / 16 && limits.looks > 0; cut *= 2) {
    const int64_t target = low > 0 || cut >= peak ? (low + high) / 2 : peak - cut;
    Rematerialization within(*schedule, values, target, limits);
    (within.run() ? high : low) = target;
    limits.looks -= within.looks();
    if (high == target) best.emplace(std::move(within));
  }
  // What is alive is less already.
  const bool packs = schedule->budget > 0 || schedule->steps.size() <= kMostPacked;
  if (!best) return;
  ir::Schedule trimmed = best->schedule();
  if (!packs || arenaOf(trimmed) < arenaOf(*schedule)) *schedule = std::move(trimmed);
}

// For tests: nothing is kept that can be computed again.
void trimAll(ir::Schedule* schedule) {
  const Values values(*schedule);
  Rematerialization all(*schedule, values, INT64_MAX);
  if (all.run()) *schedule = all.schedule();
}

// Plans within budgets, in whichever order that takes the least time.
class Search {
 public:
  explicit Search(const ir::Schedule& schedule) : budget_(schedule.budget) {
    const std::vector<Order> orders = ordersOf(schedule);
    for (const Order& order : orders) {
      if (&*std::ranges::find(orders, order.steps, &Order::steps) != &order) continue;
      reorder(order, &schedules_.emplace_back(schedule));
      values_.emplace_back(schedules_.back());
    }
  }

  // Throws OverBudget with what exceeds it and one that is met, of `whole` bytes at most.
  ir::Schedule run(size_t whole) {
    const bool isMet = meets(budget_);
    const bool isPacked = packed_.has_value();  // some plan's values fit, but not their arena
    size_t low = budget_, high = isMet ? budget_ : thin(whole);
    int64_t left = kMostNaming;
    while (left > 0 && high - low > 1 + high / kNearLeast && least_ > budget_) {
      const size_t middle = std::max(low + 1, static_cast<size_t>(std::sqrt(1.0 * low * high)));
      (meets(middle) ? high : low) = middle;
      left -= kMostSearching - looks_;
    }
    if (least_ <= budget_) return *std::move(packed_);
    if (isPacked) {
      reason_ = absl::StrCat("packed they take ", least_, " at least");
      largest_ = describeLargestAlive(*packed_);
    }
    throw OverBudget(absl::StrCat(
        "a plan's temporaries do not fit the budget of ", budget_, " bytes: ", reason_,
        "; a budget of ", high,
        " is met by this plan (others may need more); the largest of them:", largest_));
  }

 private:
  bool meets(size_t budget) {
    auto target = static_cast<int64_t>(budget);
    looks_ = kMostSearching;
    for (size_t i = 0; i < kTries && target > 0; ++i) {
      const std::optional<Rematerialization> best = cheapest(target);
      if (!best) break;
      const size_t arena = pack(*best);
      if (arena <= budget) return true;
      target -= static_cast<int64_t>(std::max(arena - budget, budget / kLeastExcess));
    }
    return false;
  }

  std::optional<Rematerialization> cheapest(int64_t target) {
    std::optional<Rematerialization> best;
    for (size_t i = 0; i < schedules_.size(); ++i) {
      const double least = best ? best->costAgain() : INFINITY;
      Rematerialization run(schedules_[i], values_[i], target,
                            {least, looks_, 0, schedules_[i].device.bytesAMove});
      const bool found = run.run();
      looks_ -= run.looks();
      if (!found && reason_.empty()) std::tie(reason_, largest_) = run.explain();
      if (found && (!best || run.costAgain() < least)) best.emplace(std::move(run));
    }
    return best;
  }

  // Where no search finds a way, the most values that fit are kept of all that are not needed soon.
  // Returns an arena that is found for a budget of as much, too, and is near the least, or `whole`.
  size_t thin(size_t whole) {
    std::optional<Rematerialization> least;
    for (int thinning = 2; thinning < 2 * std::ssize(values_[0].buffers); thinning *= 2)
      for (size_t i = 0; i < schedules_.size(); ++i) {
        const int64_t most = least ? least->most() - 1 : static_cast<int64_t>(whole);
        Rematerialization run(schedules_[i], values_[i], most, {.thinning = thinning});
        if (!run.run()) continue;
        if (run.most() <= static_cast<int64_t>(budget_) && pack(run) <= budget_) return whole;
        least.emplace(std::move(run));
      }
    return least ? std::min(whole, pack(*least)) : whole;
  }

  // Returns its arena, and keeps that of the least.
  size_t pack(const Rematerialization& run) {
    ir::Schedule schedule = run.schedule();
    const size_t arena = arenaOf(schedule);
    logLine(3, absl::StrCat("budget: ", schedule.recomputed, " steps again, ", run.moves(),
                            " moves, arena ", arena, " B"));
    if (arena < least_) {
      least_ = arena;
      packed_ = std::move(schedule);
    }
    return arena;
  }

  const size_t budget_;
  std::vector<ir::Schedule> schedules_;
  std::vector<Values> values_;
  size_t least_ = std::numeric_limits<size_t>::max();
  std::optional<ir::Schedule> packed_;  // into the least arena so far
  std::string reason_, largest_;        // as explain(), of the first plan without a way
  int64_t looks_ = 0;
};

}  // namespace

void meetBudget(ir::Schedule* schedule) {
  if (schedule->budget == 0) return schedule->trimAll ? trimAll(schedule) : trim(schedule);
  const size_t whole = arenaOf(*schedule);
  if (whole <= schedule->budget) return trim(schedule);
  *schedule = Search(*schedule).run(whole);
}

}  // namespace fl::planner
