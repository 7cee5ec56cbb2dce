// Lifetimes of temporaries and their places in the arena.
#pragma once

#include <string>
#include <vector>

#include "fl/kernel/Schedule.h"

namespace fl::planner {

// Sets first and last of every temporary and arenaBound, the most bytes alive at one step.
void computeLifetimes(ir::Schedule* schedule);
// By the lifetimes that it says: at each step, and most of all.
std::vector<int64_t> bytesAlive(const ir::Schedule& schedule);
size_t mostAlive(const ir::Schedule& schedule);

// Bytes alive over the closed interval of steps [first, last].
struct Interval {
  size_t bytes;
  int first;
  int last;
};

// Places intervals so that none that live together overlap; returns offsets, one an interval.
using Packer = std::vector<size_t> (*)(const std::vector<Interval>& intervals);
// One after the other in an order, each into the smallest gap that takes it: the largest first,
// those with the most bytes times steps first, those that live longest first. n^2.
std::vector<size_t> packBySize(const std::vector<Interval>& intervals);
std::vector<size_t> packByArea(const std::vector<Interval>& intervals);
std::vector<size_t> packByLength(const std::vector<Interval>& intervals);
// In order of birth, each into the lowest gap that takes it: n times those alive at once.
std::vector<size_t> packByBirth(const std::vector<Interval>& intervals);
// The best of all, and where there are few, of some hundred orders near the best one: what lies
// highest is placed earlier, until nothing is wasted. The same for the same intervals.
std::vector<size_t> pack(const std::vector<Interval>& intervals);
// The most bytes alive at once, below which nothing is packed.
size_t lowerBound(const std::vector<Interval>& intervals);
// How a packed schedule exceeds its budget, with the largest values at the step where most is
// alive.
std::string describeExcess(const ir::Schedule& schedule);
// pack() for temporaries.
void placeTemporaries(ir::Schedule* schedule);

}  // namespace fl::planner
