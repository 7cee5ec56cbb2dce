// Schedules in a store of Store.h: with the nodes that gathers come from, which their text does not
// have; call sites are not kept.
#pragma once

#include <optional>
#include <string>

#include "fl/kernel/Schedule.h"
#include "fl/runtime/Store.h"

namespace fl::runtime {

std::optional<ir::Schedule> findSchedule(Store& store, const std::string& key);
void insertSchedule(Store& store, const std::string& key, const ir::Schedule& schedule);

}  // namespace fl::runtime
