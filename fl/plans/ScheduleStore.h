// Schedules in a store of Store.h, with what their text does not have: which nodes of the recorded
// graph their gathers and calls come from and which recorded their steps. Call sites are not kept:
// a schedule that is found has those of the graph that asks.
#pragma once

#include <optional>
#include <string>

#include "fl/ir/Graph.h"
#include "fl/kernel/Schedule.h"
#include "fl/runtime/Store.h"

namespace fl::plans {

// `graph` is that which the schedule is compiled from, as it was recorded.
std::optional<ir::Schedule> findSchedule(runtime::Store& store, const std::string& key,
                                         const ir::Graph& graph);
void insertSchedule(runtime::Store& store, const std::string& key, const ir::Schedule& schedule,
                    const ir::Graph& graph);

}  // namespace fl::plans
