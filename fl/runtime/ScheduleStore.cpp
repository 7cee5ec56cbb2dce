#include "fl/runtime/ScheduleStore.h"

#include <sstream>
#include <variant>

namespace fl::runtime {

// An entry is a line of those nodes, and the text.
std::optional<ir::Schedule> findSchedule(Store& store, const std::string& key) {
  const std::optional<std::string> entry = store.find(key);
  if (!entry) {
    return std::nullopt;
  }
  const size_t line = entry->find('\n') + 1;
  std::istringstream origins(entry->substr(0, line));
  ir::Schedule schedule = ir::parseSchedule(entry->substr(line));
  for (ir::Step& step : schedule.steps) {
    if (auto* launch = std::get_if<ir::LaunchStep>(&step)) {
      for (int& origin : launch->gathers) {
        origins >> origin;
      }
    }
  }
  return schedule;
}

void insertSchedule(Store& store, const std::string& key, const ir::Schedule& schedule) {
  std::ostringstream entry;
  for (const ir::Step& step : schedule.steps) {
    if (const auto* launch = std::get_if<ir::LaunchStep>(&step)) {
      for (const int origin : launch->gathers) {
        entry << origin << " ";
      }
    }
  }
  entry << "\n" << ir::printSchedule(schedule, "s");
  store.insert(key, entry.str());
}

}  // namespace fl::runtime
