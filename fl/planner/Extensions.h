// Packers and orders of steps from outside of the tree, which compete with ours.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fl/ir/Slot.h"
#include "fl/kernel/Schedule.h"
#include "fl/planner/Memory.h"

namespace fl::planner {

// Offsets of intervals, one each, 64-byte aligned; the smallest arena of all packers is taken.
// Throws InternalError, which names the packer, out of the pass for offsets that are too few or
// overlap.
struct PackerExtension {
  std::string name;
  int version = 1;
  std::function<std::vector<size_t>(const std::vector<Interval>& intervals)> pack;
};
inline auto& packers() { return ir::slotOf("packer", &PackerExtension::pack); }

// The steps in another order; that of the lowest peak of all is taken. Throws InternalError out of
// the pass, which names the order, if a step is missing or comes before one that it needs
// (fl/planner/Order.h).
struct OrderExtension {
  std::string name;
  int version = 1;
  std::function<std::vector<int>(const ir::Schedule& schedule)> order;
};
inline auto& orders() { return ir::slotOf("order", &OrderExtension::order); }

}  // namespace fl::planner
