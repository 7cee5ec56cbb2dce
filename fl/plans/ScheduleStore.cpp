#include "fl/plans/ScheduleStore.h"

#include <algorithm>
#include <locale>
#include <map>
#include <sstream>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"

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
  nodes.imbue(std::locale::classic());
  const auto isRead = [&](int* node) {
    return nodes >> *node && *node >= ir::kInside && *node < std::ssize(graph.nodes());
  };
  ir::Schedule schedule = ir::parseSchedule(entry->substr(line));
  for (ir::Step& step : schedule.steps) {
    int recorded = -1;
    if (!std::ranges::all_of(originsOf(&step), isRead) || !isRead(&recorded)) return std::nullopt;
    if (recorded >= 0) std::visit([&](auto& s) { s.site = graph.nodes()[recorded].site; }, step);
  }
  return schedule;
}

void insertSchedule(runtime::Store& store, const std::string& key, const ir::Schedule& schedule,
                    const ir::Graph& graph) {
  std::map<std::pair<const void*, const char*>, int> recorded;
  for (size_t i = 0; i < graph.nodes().size(); ++i)
    recorded.emplace(placeOf(graph.nodes()[i].site), i);
  std::string entry;
  for (ir::Step step : schedule.steps) {
    for (const int* origin : originsOf(&step)) absl::StrAppend(&entry, *origin, " ");
    const auto found = recorded.find(placeOf(stepSite(step)));
    absl::StrAppend(&entry, found == recorded.end() ? -1 : found->second, " ");
  }
  store.insert(key, entry + "\n" + ir::printSchedule(schedule, "s"));
}

}  // namespace fl::plans
