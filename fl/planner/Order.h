// Which orders of the steps of a schedule compute the same, and some of them.
#pragma once

#include <string>
#include <vector>

#include "fl/kernel/Schedule.h"

namespace fl::planner {

// Step i must run after all of dependencies[i], in ascending order: readers after the writer,
// writers after the writer and its readers. What may be written in the memory of a parameter comes
// after the parameter's readers and after steps that may fail.
// What comes before a writer comes before those after it, too.
std::vector<std::vector<int>> dependencies(const ir::Schedule& schedule);

struct Order {
  std::string name;
  std::vector<int> steps;
  int64_t peak;  // the most bytes alive at one step
};

// The recorded order first; others, in about n log n, unless temporaries and steps are used more
// than 200,000 times.
std::vector<Order> ordersOf(const ir::Schedule& schedule);
// Runs the steps in that order, and sets lifetimes.
void reorder(const Order& order, ir::Schedule* schedule);

}  // namespace fl::planner
