#include "fl/plans/ScheduleStore.h"

#include <map>
#include <sstream>
#include <utility>
#include <variant>
#include <vector>

namespace fl::plans {
namespace {

// The nodes that bad indices of a step are told of.
std::vector<int*> originsOf(ir::Step* step) {
  if (auto* call = std::get_if<ir::LibraryStep>(step)) return {&call->origin};
  std::vector<int*> origins;
  for (int& origin : std::get<ir::LaunchStep>(*step).gathers) origins.push_back(&origin);
  return origins;
}

// Where a call was made: equal for what prints equally.
std::pair<const void*, const char*> placeOf(const CallSite& site) {
  return {site.address(), site.scope()};
}

}  // namespace

// An entry is a line of nodes, each step's origins and the one that has its call site, and the
// text.
std::optional<ir::Schedule> findSchedule(runtime::Store& store, const std::string& key,
                                         const ir::Graph& graph) {
  const std::optional<std::string> entry = store.find(key);
  if (!entry) return std::nullopt;
  const size_t line = entry->find('\n') + 1;
  std::istringstream nodes(entry->substr(0, line));
  ir::Schedule schedule = ir::parseSchedule(entry->substr(line));
  for (ir::Step& step : schedule.steps) {
    for (int* origin : originsOf(&step)) nodes >> *origin;
    int recorded = -1;
    nodes >> recorded;
    if (recorded >= 0) std::visit([&](auto& s) { s.site = graph.nodes()[recorded].site; }, step);
  }
  return schedule;
}

void insertSchedule(runtime::Store& store, const std::string& key, const ir::Schedule& schedule,
                    const ir::Graph& graph) {
  std::map<std::pair<const void*, const char*>, int> recorded;
  for (size_t i = 0; i < graph.nodes().size(); ++i)
    recorded.emplace(placeOf(graph.nodes()[i].site), i);
  std::ostringstream entry;
  for (ir::Step step : schedule.steps) {
    for (const int* origin : originsOf(&step)) entry << *origin << " ";
    const auto found = recorded.find(placeOf(stepSite(step)));
    entry << (found == recorded.end() ? -1 : found->second) << " ";
  }
  entry << "\n" << ir::printSchedule(schedule, "s");
  store.insert(key, entry.str());
}

}  // namespace fl::plans
