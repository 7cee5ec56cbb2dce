#include "fl/planner/Memory.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "fl/base/Error.h"
#include "fl/planner/Extensions.h"
#include "fl/planner/Planner.h"

namespace fl::planner {
namespace {

// For other orders near one, also where much is wasted, and how many of them.
constexpr int64_t kMoreLooks = 100'000, kLooksIfWasted = 1'000'000, kMoreOrders = 300;
// Of so few intervals, of which all orders that matter are not much more, so many.
constexpr int64_t kFew = 12, kOrdersOfFew = 1500;
// What all intervals may take together; and how many steps there may be.
constexpr size_t kMostBytes = size_t{1} << 62;
constexpr int kMostSteps = 10'000'000;
// Of so many intervals a packer is enough that wastes no more than this part of the bound; and what
// is much.
constexpr size_t kMany = 2000, kHardlyWasted = 100, kMuchWasted = 33;

using Order = std::vector<size_t>;

size_t stepsOf(const Interval& it) { return static_cast<size_t>(it.last - it.first) + 1; }

size_t arenaOf(const std::vector<Interval>& intervals, const std::vector<size_t>& offsets) {
  size_t bytes = 0;
  for (size_t i = 0; i < offsets.size(); ++i)
    bytes = std::max(bytes, offsets[i] + aligned(intervals[i].bytes));
  return bytes;
}

// Each into the smallest gap between those placed before; nothing if that takes more `looks` at
// them than there are.
std::vector<size_t> packInOrder(const std::vector<Interval>& intervals, const Order& order,
                                int64_t* looks) {
  const auto looking = std::ssize(order) * (std::ssize(order) - 1) / 2;
  if (looking > *looks) return {};
  *looks -= looking;
  struct Placed {
    size_t begin, end;
    int first, last;
  };
  std::vector<size_t> offsets(intervals.size(), 0);
  std::vector<Placed> placed;  // by begin
  placed.reserve(intervals.size());
  for (size_t i : order) {
    const auto& [bytes, first, last, shares] = intervals[i];
    size_t end = 0, bestGap = SIZE_MAX, best = 0;
    for (const Placed& other : placed) {
      if (first > other.last || other.first > last) continue;
      if (other.begin >= end + bytes && other.begin - end < bestGap) {
        bestGap = other.begin - end;
        best = end;
        if (bestGap == bytes) break;
      }
      end = std::max(end, other.end);
    }
    offsets[i] = bestGap == SIZE_MAX ? end : best;
    const Placed now = {offsets[i], offsets[i] + bytes, first, last};
    placed.insert(std::ranges::upper_bound(placed, now.begin, {}, &Placed::begin), now);
  }
  return offsets;
}

// Of offsets that come from outside.
void checkOffsets(const std::vector<Interval>& intervals, const std::vector<size_t>& offsets) {
  FL_INTERNAL_CHECK(offsets.size() == intervals.size(), offsets.size(), " offsets of ",
                    intervals.size(), " intervals");
  for (size_t i = 0; i < intervals.size(); ++i) {
    FL_INTERNAL_CHECK(offsets[i] < kMostBytes && offsets[i] % kAlignment == 0, "offset ", i, " is ",
                      offsets[i], ", no multiple of 64 within all memory");
    for (size_t k = 0; k < i; ++k) {
      const Interval &a = intervals[i], &b = intervals[k];
      FL_INTERNAL_CHECK(a.last < b.first || b.last < a.first ||
                            offsets[i] + a.bytes <= offsets[k] ||
                            offsets[k] + b.bytes <= offsets[i],
                        "intervals ", k, " and ", i, " overlap");
    }
  }
}

struct Packing {
  size_t arena;
  std::vector<size_t> offsets;
};

// Moves what reaches the top to a place before, again and again.
void climb(const std::vector<Interval>& intervals, size_t bound, int64_t looks, Packing* packing) {
  auto& [arena, offsets] = *packing;
  Order order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return offsets[i]; });
  std::minstd_rand random;
  const int64_t most = std::ssize(intervals) > kFew ? kMoreOrders : kOrdersOfFew;
  for (int i = 0; i < most && arena > bound; ++i) {
    Order next = order;
    const auto isTop = [&](size_t k) { return offsets[k] + intervals[k].bytes == arena; };
    const auto top = std::ranges::find_if(next, isTop);
    const auto ahead = static_cast<size_t>(top - next.begin());
    std::rotate(next.begin() + static_cast<std::ptrdiff_t>(random() % (ahead + 1)), top, top + 1);
    // And another one, so that no two orders follow each other in turns.
    std::swap(next[random() % next.size()], next[random() % next.size()]);
    std::vector<size_t> found = packInOrder(intervals, next, &looks);
    if (found.empty()) break;
    if (const size_t now = arenaOf(intervals, found); now <= arena) {
      *packing = {now, std::move(found)};
      order = std::move(next);
    }
  }
}

// Fills the arena from the bottom: of what is free at the lowest height, the longest interval that
// lives within those steps lies there; where none does, what is free begins at the height of a
// neighbour. This is the best fit of T. Sekiyama et al., "Profile-guided memory optimization for
// deep neural networks", 2018, with a tree to find intervals and an order of the heights.
class Levels {
 public:
  explicit Levels(const std::vector<Interval>& intervals)
      : intervals_(intervals), offsets_(intervals.size(), 0) {
    for (size_t i = 0; i < intervals.size(); ++i)
      if (intervals[i].bytes > 0) order_.push_back(i);
    std::ranges::stable_sort(order_, {}, [&](size_t i) { return intervals_[i].first; });
    leaves_ = std::bit_ceil(order_.size());
    tree_.resize(2 * leaves_);
    for (size_t k = 0; k < order_.size(); ++k)
      tree_[leaves_ + k] = {intervals_[order_[k]].last, stepsOf(intervals_[order_[k]])};
    for (size_t k = leaves_; k-- > 1;) tree_[k] = both(tree_[2 * k], tree_[2 * k + 1]);
    set(0, 0);
    heights_[std::numeric_limits<int>::max()] = SIZE_MAX;
  }

  std::vector<size_t> run() {
    for (size_t placed = 0; placed < order_.size();) {
      const auto [height, begin] = *lowest_.begin();
      const int end = std::next(heights_.find(begin))->first;
      if (const std::optional<size_t> found = longestWithin(begin, end)) {
        place(order_[*found], height, end);
        remove(*found);
        ++placed;
      } else {
        raise(begin, end);
      }
    }
    return std::move(offsets_);
  }

 private:
  // Of intervals that are not placed: the first of their last steps, and the length of the longest.
  struct Node {
    int last = std::numeric_limits<int>::max();
    size_t steps = 0;
  };
  static Node both(const Node& a, const Node& b) {
    return {std::min(a.last, b.last), std::max(a.steps, b.steps)};
  }

  std::optional<size_t> longestWithin(int begin, int end) {
    const auto first = [&](size_t i) { return intervals_[i].first; };
    longest_ = 0;
    from_ = std::ranges::lower_bound(order_, begin, {}, first) - order_.begin();
    to_ = std::ranges::lower_bound(order_, end, {}, first) - order_.begin();
    last_ = end - 1;
    if (from_ < to_) search(1, 0, leaves_);
    return longest_ > 0 ? std::optional(found_) : std::nullopt;
  }

  // Below a node that has the intervals [low, high) of the order.
  void search(size_t node, size_t low, size_t high) {
    const bool isOut = high <= from_ || low >= to_ || tree_[node].last > last_;
    if (isOut || tree_[node].steps <= longest_ || (looks_ < 0 && longest_ > 0)) return;
    --looks_;
    if (high - low == 1) {
      longest_ = tree_[node].steps;
      found_ = low;
      return;
    }
    search(2 * node, low, (low + high) / 2);
    search(2 * node + 1, (low + high) / 2, high);
  }

  void remove(size_t k) {
    tree_[leaves_ + k] = {};
    for (k = (leaves_ + k) / 2; k > 0; k /= 2) tree_[k] = both(tree_[2 * k], tree_[2 * k + 1]);
  }

  // At the height of what is free until `end`.
  void place(size_t i, size_t height, int end) {
    const int behind = intervals_[i].last + 1;
    offsets_[i] = height;
    if (behind < end) set(behind, height);
    set(intervals_[i].first, height + intervals_[i].bytes);
    join(behind);
    join(intervals_[i].first);
  }

  void raise(int begin, int end) {
    const auto at = heights_.find(begin);
    const size_t before = at == heights_.begin() ? SIZE_MAX : std::prev(at)->second;
    set(begin, std::min(before, std::next(at)->second));
    join(end);
    join(begin);
  }

  void set(int begin, size_t height) {
    const auto [at, isNew] = heights_.try_emplace(begin, height);
    if (!isNew) lowest_.erase({at->second, begin});
    at->second = height;
    lowest_.emplace(height, begin);
  }

  // With what is before it, if that is as high.
  void join(int begin) {
    const auto at = heights_.find(begin);
    if (at == heights_.begin() || std::prev(at)->second != at->second) return;
    lowest_.erase({at->second, begin});
    heights_.erase(at);
  }

  const std::vector<Interval>& intervals_;
  std::vector<size_t> offsets_;
  Order order_;             // by their first steps
  std::vector<Node> tree_;  // the root is 1, and the sons of k are 2 k and 2 k + 1
  size_t leaves_ = 0;
  std::map<int, size_t> heights_;                       // where what is free begins, by first step
  std::set<std::pair<size_t, int>> lowest_;             // the same by height
  size_t from_ = 0, to_ = 0, longest_ = 0, found_ = 0;  // of the search
  int last_ = 0;
  int64_t looks_ = kMostLooks;
};

// Of temporaries on the device, or of those on the host; the others are empty.
std::vector<Interval> intervalsOf(const ir::Schedule& schedule, bool onHost = false) {
  std::vector<Interval> intervals;
  for (const ir::Temporary& t : schedule.temporaries)
    intervals.push_back({t.onHost == onHost ? t.bytes : 0, t.first, t.last, t.shares});
  return intervals;
}

// Aligned, and those that share as one, each in the place of the first of them; the others are
// empty. By interval, which one it is in.
std::vector<size_t> mergeShares(std::vector<Interval>* intervals) {
  std::vector<size_t> homes;
  size_t left = kMostBytes;
  for (size_t i = 0; i < intervals->size(); ++i) {
    Interval& it = (*intervals)[i];
    FL_USER_CHECK(it.bytes <= left && aligned(it.bytes) <= left, "interval ", i, ": with its ",
                  it.bytes, " bytes they take more than all memory");
    left -= it.bytes = aligned(it.bytes);
    FL_INTERNAL_CHECK(it.shares < static_cast<int>(i), "interval ", i, " shares the memory of ",
                      it.shares, ", which does not come before it");
    homes.push_back(it.shares < 0 ? i : homes[it.shares]);
    if (it.shares < 0) continue;
    Interval& home = (*intervals)[homes[i]];
    home = {std::max(home.bytes, it.bytes), std::min(home.first, it.first),
            std::max(home.last, it.last)};
    it = {0, home.first, home.first};
  }
  return homes;
}

// At each step.
std::vector<int64_t> bytesAlive(std::vector<Interval> intervals, size_t steps) {
  mergeShares(&intervals);
  for (const Interval& it : intervals) {
    FL_USER_CHECK(it.last < kMostSteps, "a temporary lives until step ", it.last,
                  "; a plan has at most ", kMostSteps);
    steps = std::max(steps, static_cast<size_t>(it.last) + 1);
  }
  std::vector<int64_t> bytes(steps + 2, 0);
  for (const Interval& it : intervals) {
    bytes[it.first] += static_cast<int64_t>(it.bytes);
    bytes[it.last + 1] -= static_cast<int64_t>(it.bytes);
  }
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  return bytes;
}

}  // namespace

std::vector<int> temporariesOf(const ir::Schedule& schedule, const ir::Step& step) {
  std::vector<int> temporaries;
  const ir::StepBuffers buffers = stepBuffers(schedule, step);
  for (const auto* refs : {&buffers.reads, &buffers.writes})
    for (const ir::BufferRef& ref : *refs)
      if (ref.space == ir::BufferRef::Space::Temporary) temporaries.push_back(ref.index);
  std::ranges::sort(temporaries);
  temporaries.erase(std::ranges::unique(temporaries).begin(), temporaries.end());
  return temporaries;
}

void renameTemporaries(ir::Step* step, const std::vector<int>& names) {
  const auto rename = [&](ir::BufferRef* ref) {
    ref->index = ref->space == ir::BufferRef::Space::Temporary ? names[ref->index] : ref->index;
  };
  std::visit([&](auto& s) { s.scratch = s.scratch < 0 ? -1 : names[s.scratch]; }, *step);
  if (auto* launch = std::get_if<ir::LaunchStep>(step)) {
    for (ir::LaunchOperand& operand : launch->operands)
      if (operand.buffer) rename(&*operand.buffer);
  } else {
    auto& call = std::get<ir::LibraryStep>(*step);
    for (ir::BufferPlace& operand : call.operands) rename(&operand.buffer);
    rename(&call.result.buffer);
  }
}

std::vector<int64_t> bytesAlive(const ir::Schedule& schedule) {
  // Temporaries that no step uses, of size 0, count as alive at step 0, even if there is none; and
  // there may be nothing but temporaries.
  return bytesAlive(intervalsOf(schedule), schedule.steps.size());
}

size_t mostAlive(const ir::Schedule& schedule) { return lowerBound(intervalsOf(schedule)); }

void computeLifetimes(ir::Schedule* schedule) {
  std::vector<bool> seen(schedule->temporaries.size(), false);
  for (int i = 0; i < std::ssize(schedule->steps); ++i) {
    for (int used : temporariesOf(*schedule, schedule->steps[i])) {
      ir::Temporary& temporary = schedule->temporaries[used];
      if (!seen[used]) temporary.first = i;
      seen[used] = true;
      temporary.last = i;
    }
  }
  // Of what only results without elements would read, no step is left.
  for (size_t i = 0; i < seen.size(); ++i)
    if (!seen[i]) schedule->temporaries[i].bytes = 0;
  schedule->arenaBound = mostAlive(*schedule);
}

bool addScratch(ir::Schedule* schedule) {
  std::vector<ir::Temporary>& all = schedule->temporaries;
  bool grows = false;
  for (int i = 0; schedule->device.scratchBytes && i < std::ssize(schedule->steps); ++i) {
    const size_t bytes = aligned(schedule->device.scratchBytes(*schedule, i));
    int scratch = ir::scratchOf(schedule->steps[i]);
    if (bytes <= (scratch < 0 ? 0 : all[scratch].bytes)) continue;
    if (scratch < 0) {
      scratch = static_cast<int>(all.size());
      const bool isLast = i + 1 == std::ssize(schedule->steps);
      const auto* next = isLast ? nullptr : std::get_if<ir::LaunchStep>(&schedule->steps[i + 1]);
      all.push_back({0, i, i + (next && next->epilogue)});
      std::visit([&](auto& step) { step.scratch = scratch; }, schedule->steps[i]);
    }
    all[scratch].bytes = bytes;
    grows = true;
  }
  if (grows) schedule->arenaBound = mostAlive(*schedule);
  return grows;
}

std::vector<size_t> packByKey(const std::vector<Interval>& intervals, const Key& key,
                              int64_t* looks) {
  Order order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return key(intervals[i]); });
  return packInOrder(intervals, order, looks);
}

std::vector<Key> keysOf(const std::vector<Interval>& intervals) {
  const std::vector<int64_t> alive = bytesAlive(intervals, 0);
  const auto peak = static_cast<int>(std::ranges::max_element(alive) - alive.begin());
  const auto nearness = [peak](const Interval& it) {
    return static_cast<size_t>(kMostSteps - std::max({it.first - peak, peak - it.last, 0}));
  };
  const auto magnitude = [](const Interval& it) { return std::bit_width(it.bytes); };
  return {[=](const Interval& it) { return std::pair(nearness(it), stepsOf(it)); },
          [=](const Interval& it) { return std::pair(it.bytes, stepsOf(it)); },
          [=](const Interval& it) { return std::pair(magnitude(it), it.bytes * stepsOf(it)); }};
}

std::vector<size_t> packByLevel(const std::vector<Interval>& intervals) {
  return Levels(intervals).run();
}

std::vector<size_t> packBackwards(std::vector<Interval> intervals) {
  for (Interval& it : intervals) it = {it.bytes, kMostSteps - it.last, kMostSteps - it.first};
  return packByLevel(intervals);
}

size_t lowerBound(const std::vector<Interval>& intervals) {
  return static_cast<size_t>(std::ranges::max(bytesAlive(intervals, 0)));
}

std::vector<size_t> pack(const std::vector<Interval>& given, int64_t* looks, bool asksOthers) {
  std::vector<Interval> intervals = given;
  const std::vector<size_t> homes = mergeShares(&intervals);
  const size_t bound = lowerBound(intervals);
  std::vector<Packing> all;  // the best first
  const auto add = [&](std::vector<size_t> offsets) {
    const size_t arena = arenaOf(intervals, offsets);
    const auto at = std::ranges::upper_bound(all, arena, {}, &Packing::arena);
    if (offsets.size() == intervals.size()) all.insert(at, {arena, std::move(offsets)});
  };
  int64_t left = kMostLooks;
  // Of many the first is all but perfect, and the others take the square of their number.
  const size_t enough = bound + (intervals.size() > kMany ? bound / kHardlyWasted : 0);
  add(packByLevel(intervals));
  if (all[0].arena > enough) {
    add(packBackwards(intervals));
    for (const Key& key : keysOf(intervals))
      if (all[0].arena > enough) add(packByKey(intervals, key, &left));
  }
  if (looks) *looks += kMostLooks - left;
  const size_t much = bound + bound / kMuchWasted;
  for (Packing start : std::vector(all)) {
    climb(intervals, bound, all[0].arena > much ? kLooksIfWasted : kMoreLooks, &start);
    add(std::move(start.offsets));
    if (all[0].arena <= much) break;
  }
  for (const PackerExtension& packer : *packers().all()) {
    if (!asksOthers) break;
    std::vector<size_t> other = packer.pack(intervals);
    packers().blame(packer.name, [&] { checkOffsets(intervals, other); });
    add(std::move(other));
  }
  std::vector<size_t> best = std::move(all[0].offsets);
  for (size_t i = 0; i < homes.size(); ++i) best[i] = best[homes[i]];
  return best;
}

void placeTemporaries(ir::Schedule* schedule, bool asksOthers) {
  const std::vector<Interval> intervals = intervalsOf(*schedule);
  const std::vector<size_t> offsets = pack(intervals, nullptr, asksOthers);
  const auto isOnHost = [](const ir::Temporary& t) { return t.onHost; };
  std::vector<size_t> hostOffsets = offsets;
  if (std::ranges::any_of(schedule->temporaries, isOnHost))
    hostOffsets = pack(intervalsOf(*schedule, /*onHost=*/true), nullptr, /*asksOthers=*/false);
  for (size_t i = 0; i < offsets.size(); ++i) {
    ir::Temporary& temporary = schedule->temporaries[i];
    temporary.offset = temporary.onHost ? hostOffsets[i] : offsets[i];
  }
  schedule->arenaBytes = arenaOf(intervals, offsets);
  schedule->arenaBound = lowerBound(intervals);
}

std::string describeStep(const ir::Schedule& schedule, int step) {
  const std::string where = stepSite(schedule.steps[step]).toString();
  return absl::StrCat(stepName(schedule, schedule.steps[step]), where.empty() ? "" : " at ", where);
}

std::string describeLargest(const ir::Schedule& schedule, std::vector<int> temporaries) {
  const auto bytes = [&](int i) { return schedule.temporaries[i].bytes; };
  std::ranges::stable_sort(temporaries, std::greater(), bytes);
  temporaries.resize(std::min<size_t>(temporaries.size(), 10));
  std::string text;
  for (int i : temporaries) {
    const int first = schedule.temporaries[i].first, last = schedule.temporaries[i].last;
    const bool isMade = first < std::ssize(schedule.steps);
    const bool isScratch = isMade && ir::scratchOf(schedule.steps[first]) == i;
    absl::StrAppend(&text, "\n  ", bytes(i), " bytes of ", isScratch ? "scratch memory of " : "",
                    isMade ? describeStep(schedule, first)
                           : absl::StrCat("interval ", i, " (steps ", first, " to ", last, ")"));
  }
  return text;
}

std::string describeLargestAlive(const ir::Schedule& schedule) {
  const std::vector<int64_t> alive = bytesAlive(schedule);
  const auto peak = static_cast<int>(std::ranges::max_element(alive) - alive.begin());
  std::vector<int> there;
  for (int i = 0; i < std::ssize(schedule.temporaries); ++i) {
    const ir::Temporary& t = schedule.temporaries[i];
    if (!t.onHost && t.first <= peak && peak <= t.last) there.push_back(i);
  }
  return describeLargest(schedule, std::move(there));
}

void packTemporaries(ir::Schedule* schedule) {
  placeTemporaries(schedule);
  if (schedule->budget == 0 || schedule->arenaBytes <= schedule->budget) return;
  throw OverBudget(absl::StrCat("a plan's temporaries do not fit the budget of ", schedule->budget,
                                " bytes: packed they take ", schedule->arenaBytes,
                                "; the largest of them:", describeLargestAlive(*schedule)));
}

}  // namespace fl::planner
