// Lifetimes of temporaries and their places in the arena.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fl/kernel/Schedule.h"

namespace fl::planner {

// Of offsets in an arena.
constexpr size_t kAlignment = 64;
constexpr size_t aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

// Those that a step uses, in ascending order.
std::vector<int> temporariesOf(const ir::Schedule& schedule, const ir::Step& step);
// Calls temporary i names[i].
void renameTemporaries(ir::Step* step, const std::vector<int>& names);
// Sets first and last of every temporary and arenaBound, the most bytes alive at one step.
void computeLifetimes(ir::Schedule* schedule);
// By the lifetimes that it says: at each step, and most of all.
std::vector<int64_t> bytesAlive(const ir::Schedule& schedule);
size_t mostAlive(const ir::Schedule& schedule);

// Bytes alive over the closed interval of steps [first, last]; those of an earlier interval, if
// `shares` is its index. Intervals that share are alive, all of them, from the first step of any to
// the last one of any, and take as many bytes as the largest.
struct Interval {
  size_t bytes;
  int first;
  int last;
  int shares = -1;
};

// Packers look at so many intervals at most, those by key all together.
constexpr int64_t kMostLooks = 10'000'000;
// Packers place intervals so that none that live together overlap, and return offsets, one an
// interval. But for pack(), they are for intervals of which none shares.
//
// One after the other, those with the largest key first, each into the smallest gap that takes it;
// by looking at all placed before, n^2 / 2 looks at most. Nothing if that is more than `looks`,
// from which it takes them.
using Key = std::function<std::pair<size_t, size_t>(const Interval& interval)>;
std::vector<size_t> packByKey(const std::vector<Interval>& intervals, const Key& key,
                              int64_t* looks);
// What lives next to the step where most is alive; bytes; their power of two, and then their bytes
// times how long they live.
std::vector<Key> keysOf(const std::vector<Interval>& intervals);
// From the bottom, where the longest that fits between its neighbours lies on what is lowest. n log
// n, but for kMostLooks to find the longest; then any that fits. And the same backwards in time.
std::vector<size_t> packByLevel(const std::vector<Interval>& intervals);
std::vector<size_t> packBackwards(std::vector<Interval> intervals);
// The best of all, with shares, and where there are few, of some hundred orders near it: what lies
// highest is placed earlier, until nothing is wasted; and near the others, while that is 3 %. The
// same for the same intervals. In n log n and kMostLooks looks by key, the number of which is added
// to `looks`; those for which no more are left are left out. Others' packers (Extensions.h) are
// asked if that is said.
std::vector<size_t> pack(const std::vector<Interval>& intervals, int64_t* looks = nullptr,
                         bool asksOthers = true);
// The most bytes alive at once, below which nothing is packed.
size_t lowerBound(const std::vector<Interval>& intervals);
// The ten largest of these temporaries, a line each with what makes it; and of those alive where
// most is alive.
std::string describeLargest(const ir::Schedule& schedule, std::vector<int> temporaries);
std::string describeLargestAlive(const ir::Schedule& schedule);
// "matmul at file:line"
std::string describeStep(const ir::Schedule& schedule, int step);
// pack() for temporaries.
void placeTemporaries(ir::Schedule* schedule, bool asksOthers = true);

}  // namespace fl::planner
