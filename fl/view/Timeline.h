// What a plan has in its arena at each step, as JSON: `fl memory` prints it, pages draw it.
#pragma once

#include "fl/kernel/Schedule.h"
#include "nlohmann/json_fwd.hpp"

namespace fl::view {

// {arena, bound, recorded, unplanned: bytes; steps: [{name, alive}]; buffers: [{name, bytes, first,
// last, offset}]}; without `recorded` where the plan was not recorded, as intervals alone are not.
nlohmann::ordered_json timelineOf(const ir::Schedule& plan);

}  // namespace fl::view
