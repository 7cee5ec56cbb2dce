#include "fl/planner/Memory.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"
#include "fl/base/Error.h"
#include "fl/planner/Extensions.h"
#include "fl/planner/Planner.h"

namespace fl::planner {
namespace {

// Comparing every pair is worth it up to here.
constexpr size_t kMaxPairwise = 2000;
// So many other orders are tried, fewer of many intervals: pairs times orders are bounded.
constexpr size_t kMoreOrders = 300, kMorePairs = 200'000;

using Order = std::vector<size_t>;

size_t arenaOf(const std::vector<Interval>& intervals, const std::vector<size_t>& offsets) {
  size_t bytes = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    bytes = std::max(bytes, offsets[i] + intervals[i].bytes);
  }
  return bytes;
}

// Each into the smallest gap between those placed before.
std::vector<size_t> packInOrder(const std::vector<Interval>& intervals, const Order& order) {
  std::vector<size_t> offsets(intervals.size(), 0);
  std::vector<size_t> placed;
  std::vector<std::pair<size_t, size_t>> taken;  // [begin, end) of those alive together
  for (size_t i : order) {
    taken.clear();
    for (size_t j : placed) {
      if (intervals[i].first <= intervals[j].last && intervals[j].first <= intervals[i].last) {
        taken.emplace_back(offsets[j], offsets[j] + intervals[j].bytes);
      }
    }
    std::sort(taken.begin(), taken.end());
    size_t end = 0, bestGap = SIZE_MAX, best = 0;
    for (const auto& [begin, stop] : taken) {
      if (begin >= end + intervals[i].bytes && begin - end < bestGap) {
        bestGap = begin - end;
        best = end;
      }
      end = std::max(end, stop);
    }
    offsets[i] = bestGap == SIZE_MAX ? end : best;
    placed.push_back(i);
  }
  return offsets;
}

size_t stepsOf(const Interval& interval) {
  return static_cast<size_t>(interval.last - interval.first) + 1;
}
size_t bytesOf(const Interval& interval) { return interval.bytes; }
size_t areaOf(const Interval& interval) { return interval.bytes * stepsOf(interval); }

// Those of which `key` is large come first.
Order orderBy(const std::vector<Interval>& intervals, size_t (*key)(const Interval&)) {
  Order order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return key(intervals[i]); });
  return order;
}

// Of offsets that come from outside.
void checkOffsets(const std::vector<Interval>& intervals, const std::vector<size_t>& offsets,
                  const std::string& packer) {
  FL_INTERNAL_CHECK(offsets.size() == intervals.size(), "packer ", packer, ": ", offsets.size(),
                    " offsets of ", intervals.size(), " intervals");
  for (size_t i = 0; i < intervals.size(); ++i) {
    FL_INTERNAL_CHECK(offsets[i] < size_t{1} << 62, "packer ", packer, ": offset ", i, " is ",
                      offsets[i], ", beyond all memory");
    FL_INTERNAL_CHECK(offsets[i] % 64 == 0, "packer ", packer, ": offset ", i, " is ", offsets[i],
                      ", no multiple of 64");
    for (size_t k = 0; k < i; ++k) {
      const Interval &a = intervals[i], &b = intervals[k];
      FL_INTERNAL_CHECK(a.last < b.first || b.last < a.first ||
                            offsets[i] + a.bytes <= offsets[k] ||
                            offsets[k] + b.bytes <= offsets[i],
                        "packer ", packer, ": intervals ", k, " and ", i, " overlap");
    }
  }
}

// Moves what reaches the top to a place before, again and again.
class Climb {
 public:
  Climb(const std::vector<Interval>& intervals, std::vector<size_t> offsets)
      : intervals_(intervals), offsets_(std::move(offsets)), order_(intervals.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(order_, {}, [&](size_t i) { return offsets_[i]; });
    arena_ = arenaOf(intervals_, offsets_);
  }

  std::vector<size_t> run(size_t bound) {
    const size_t pairs = intervals_.size() * intervals_.size();
    const size_t orders = std::min(kMoreOrders, kMorePairs / std::max<size_t>(1, pairs));
    for (size_t i = 0; i < orders && arena_ > bound; ++i) {
      Order next = order_;
      const auto isTop = [&](size_t k) { return offsets_[k] + intervals_[k].bytes == arena_; };
      const auto top = std::ranges::find_if(next, isTop);
      const auto ahead = static_cast<size_t>(top - next.begin());
      std::rotate(next.begin() + static_cast<std::ptrdiff_t>(random_() % (ahead + 1)), top,
                  top + 1);
      // And another one, so that no two orders follow each other in turns.
      std::swap(next[random_() % next.size()], next[random_() % next.size()]);
      std::vector<size_t> offsets = packInOrder(intervals_, next);
      if (const size_t arena = arenaOf(intervals_, offsets); arena <= arena_) {
        arena_ = arena;
        order_ = std::move(next);
        offsets_ = std::move(offsets);
      }
    }
    return std::move(offsets_);
  }

 private:
  const std::vector<Interval>& intervals_;
  std::vector<size_t> offsets_;
  Order order_;
  size_t arena_;
  std::minstd_rand random_;
};

}  // namespace

std::vector<int64_t> bytesAlive(const ir::Schedule& schedule) {
  // Temporaries that no step uses, of size 0, count as alive at step 0, even if there is none; and
  // there may be nothing but temporaries.
  size_t steps = schedule.steps.size();
  for (const ir::Temporary& t : schedule.temporaries) {
    steps = std::max(steps, static_cast<size_t>(t.last) + 1);
  }
  std::vector<int64_t> bytes(steps + 2, 0);
  for (const ir::Temporary& t : schedule.temporaries) {
    bytes[t.first] += static_cast<int64_t>(t.bytes);
    bytes[t.last + 1] -= static_cast<int64_t>(t.bytes);
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  return bytes;
}

size_t mostAlive(const ir::Schedule& schedule) {
  return static_cast<size_t>(std::ranges::max(bytesAlive(schedule)));
}

void computeLifetimes(ir::Schedule* schedule) {
  std::vector<bool> seen(schedule->temporaries.size(), false);
  for (size_t i = 0; i < schedule->steps.size(); ++i) {
    const ir::StepBuffers buffers = stepBuffers(*schedule, schedule->steps[i]);
    for (const auto* refs : {&buffers.reads, &buffers.writes}) {
      for (const ir::BufferRef& ref : *refs) {
        if (ref.space != ir::BufferRef::Space::Temporary) continue;
        ir::Temporary& temporary = schedule->temporaries[ref.index];
        if (!seen[ref.index]) {
          temporary.first = static_cast<int>(i);
          seen[ref.index] = true;
        }
        temporary.last = static_cast<int>(i);
      }
    }
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    // Of what only results without elements would read, no step is left.
    if (!seen[i]) schedule->temporaries[i].bytes = 0;
  }
  schedule->arenaBound = mostAlive(*schedule);
}

std::vector<size_t> packBySize(const std::vector<Interval>& intervals) {
  return packInOrder(intervals, orderBy(intervals, bytesOf));
}
std::vector<size_t> packByArea(const std::vector<Interval>& intervals) {
  return packInOrder(intervals, orderBy(intervals, areaOf));
}
std::vector<size_t> packByLength(const std::vector<Interval>& intervals) {
  return packInOrder(intervals, orderBy(intervals, stepsOf));
}

std::vector<size_t> packByBirth(const std::vector<Interval>& intervals) {
  std::vector<size_t> order(intervals.size()), offsets(intervals.size(), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return intervals[a].first < intervals[b].first; });
  std::map<size_t, size_t> alive;     // offset to end
  std::multimap<int, size_t> deaths;  // last step to offset
  for (size_t i : order) {
    while (!deaths.empty() && deaths.begin()->first < intervals[i].first) {
      alive.erase(deaths.begin()->second);
      deaths.erase(deaths.begin());
    }
    size_t end = 0;
    for (const auto& [begin, stop] : alive) {
      if (begin >= end + intervals[i].bytes) break;
      end = stop;
    }
    offsets[i] = end;
    if (intervals[i].bytes > 0) {
      alive[end] = end + intervals[i].bytes;
      deaths.emplace(intervals[i].last, end);
    }
  }
  return offsets;
}

size_t lowerBound(const std::vector<Interval>& intervals) {
  std::map<int, int64_t> changes;  // by step
  for (const Interval& interval : intervals) {
    changes[interval.first] += static_cast<int64_t>(interval.bytes);
    changes[interval.last + 1] -= static_cast<int64_t>(interval.bytes);
  }
  int64_t alive = 0, most = 0;
  for (const auto& [step, change] : changes) {
    alive += change;
    most = std::max(most, alive);
  }
  return static_cast<size_t>(most);
}

std::vector<size_t> pack(const std::vector<Interval>& intervals) {
  const size_t bound = lowerBound(intervals);
  std::vector<size_t> best = packByBirth(intervals);
  const bool isPairwise = intervals.size() <= kMaxPairwise;
  for (const Packer packer : {packBySize, packByArea, packByLength}) {
    if (isPairwise && arenaOf(intervals, best) > bound) {
      std::vector<size_t> other = packer(intervals);
      best = arenaOf(intervals, other) < arenaOf(intervals, best) ? std::move(other) : best;
    }
  }
  best = Climb(intervals, std::move(best)).run(bound);
  for (const PackerExtension& packer : *packers().all()) {
    std::vector<size_t> other = packer.pack(intervals);
    checkOffsets(intervals, other, packer.name);
    best = arenaOf(intervals, other) < arenaOf(intervals, best) ? std::move(other) : best;
  }
  return best;
}

void placeTemporaries(ir::Schedule* schedule) {
  std::vector<Interval> intervals;
  for (const ir::Temporary& t : schedule->temporaries) {
    intervals.push_back({t.bytes, t.first, t.last});
  }
  const std::vector<size_t> offsets = pack(intervals);
  for (size_t i = 0; i < offsets.size(); ++i) schedule->temporaries[i].offset = offsets[i];
  schedule->arenaBytes = arenaOf(intervals, offsets);
}

std::string describeExcess(const ir::Schedule& schedule) {
  const std::vector<int64_t> alive = bytesAlive(schedule);
  const auto peak = static_cast<int>(std::ranges::max_element(alive) - alive.begin());
  std::vector<ir::Temporary> largest;
  std::ranges::copy_if(schedule.temporaries, std::back_inserter(largest),
                       [&](const auto& t) { return t.first <= peak && peak <= t.last; });
  std::ranges::stable_sort(largest, std::greater(), &ir::Temporary::bytes);
  constexpr size_t kTold = 10;
  largest.resize(std::min(largest.size(), kTold));
  std::string text =
      absl::StrCat("a plan's temporaries do not fit the budget of ", schedule.budget,
                   " bytes: packed they take ", schedule.arenaBytes, "; the largest of them:");
  for (const ir::Temporary& t : largest) {
    const bool isMade = static_cast<size_t>(t.first) < schedule.steps.size();
    const std::string where = isMade ? stepSite(schedule.steps[t.first]).toString() : "";
    absl::StrAppend(&text, "\n  ", t.bytes, " bytes of ",
                    isMade ? stepName(schedule, schedule.steps[t.first]) : "an interval",
                    where.empty() ? "" : " at ", where);
  }
  return text;
}

void packTemporaries(ir::Schedule* schedule) {
  placeTemporaries(schedule);
  if (schedule->budget > 0 && schedule->arenaBytes > schedule->budget) {
    throw OverBudget(describeExcess(*schedule));
  }
}

}  // namespace fl::planner
