// The buffers that steps use.
#pragma once

#include <vector>

#include "fl/kernel/Schedule.h"

namespace fl::planner {

// The temporaries that a step uses, in ascending order.
std::vector<int> temporariesOf(const ir::Schedule& schedule, const ir::Step& step);

// Calls temporary i names[i].
void renameTemporaries(ir::Step* step, const std::vector<int>& names);

}  // namespace fl::planner
