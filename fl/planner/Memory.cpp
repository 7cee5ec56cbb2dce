#include "fl/planner/Memory.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "fl/planner/Planner.h"

namespace fl::planner {
namespace {

// Comparing every pair is worth it up to here.
constexpr size_t kMaxPairwise = 2000;

size_t arenaOf(const std::vector<Interval>& intervals, const std::vector<size_t>& offsets) {
  size_t bytes = 0;
  for (size_t i = 0; i < intervals.size(); ++i) {
    bytes = std::max(bytes, offsets[i] + intervals[i].bytes);
  }
  return bytes;
}

}  // namespace

std::vector<int64_t> bytesAlive(const ir::Schedule& schedule) {
  // Temporaries that no step uses, of size 0, count as alive at step 0, even if there is none.
  std::vector<int64_t> bytes(schedule.steps.size() + 2, 0);
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
        if (ref.space != ir::BufferRef::Space::Temporary) {
          continue;
        }
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
  std::vector<size_t> order(intervals.size()), offsets(intervals.size(), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return intervals[a].bytes > intervals[b].bytes; });
  std::vector<size_t> placed;
  for (size_t i : order) {
    std::vector<std::pair<size_t, size_t>> taken;  // [begin, end) of those alive together
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
      if (begin >= end + intervals[i].bytes) {
        break;
      }
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

void packTemporaries(ir::Schedule* schedule) {
  std::vector<Interval> intervals;
  for (const ir::Temporary& t : schedule->temporaries) {
    intervals.push_back({t.bytes, t.first, t.last});
  }
  std::vector<size_t> best = packByBirth(intervals);
  if (intervals.size() <= kMaxPairwise) {
    const std::vector<size_t> bySize = packBySize(intervals);
    best = arenaOf(intervals, bySize) < arenaOf(intervals, best) ? bySize : best;
  }
  for (size_t i = 0; i < best.size(); ++i) {
    schedule->temporaries[i].offset = best[i];
  }
  schedule->arenaBytes = arenaOf(intervals, best);
}

}  // namespace fl::planner
