// Orders in which the steps of a schedule may run.
#pragma once

#include <string>
#include <vector>

#include "fl/kernel/Schedule.h"

namespace fl::planner {

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
