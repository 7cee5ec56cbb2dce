#include "fl/view/Timeline.h"

#include <algorithm>

#include "fl/planner/Memory.h"
#include "nlohmann/json.hpp"

namespace fl::view {

using Json = nlohmann::ordered_json;

Json timelineOf(const ir::Schedule& plan) {
  Json steps = Json::array(), buffers = Json::array();
  size_t unplanned = 0;
  const std::vector<int64_t> alive = planner::bytesAlive(plan);
  std::vector<std::string> makers(plan.temporaries.size());
  // A schedule may be nothing but temporaries, whose steps have no names.
  for (size_t i = 0; i + 2 < alive.size(); ++i) {
    const char* name = i < plan.steps.size() ? stepName(plan, plan.steps[i]) : "";
    steps.push_back({{"name", name}, {"alive", alive[i]}});
  }
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const int scratch = ir::scratchOf(plan.steps[i]);
    for (const ir::BufferRef& ref : stepBuffers(plan, plan.steps[i]).writes) {
      if (ref.space == ir::BufferRef::Space::Temporary &&
          plan.temporaries[ref.index].first == static_cast<int>(i)) {
        makers[ref.index] = ref.index == scratch ? "scratch memory of " : "";
        makers[ref.index] += stepName(plan, plan.steps[i]);
      }
    }
  }
  for (size_t i = 0; i < plan.temporaries.size(); ++i) {
    const ir::Temporary& buffer = plan.temporaries[i];
    if (buffer.onHost) continue;
    unplanned += buffer.bytes;
    buffers.push_back({{"name", makers[i]},
                       {"bytes", buffer.bytes},
                       {"first", buffer.first},
                       {"last", buffer.last},
                       {"offset", buffer.offset}});
  }
  // A text may say less of its bound.
  const auto bound = static_cast<size_t>(std::ranges::max(alive));
  Json timeline = {
      {"arena", plan.arenaBytes},
      {"bound", bound},
      {"ratio",
       bound > 0 ? static_cast<double>(plan.arenaBytes) / static_cast<double>(bound) : 1.0}};
  // Both are of what was recorded, which may have become other temporaries.
  if (plan.unplannedBytes > 0) timeline["recorded"] = plan.recordedBound;
  timeline["unplanned"] = plan.unplannedBytes > 0 ? plan.unplannedBytes : unplanned;
  timeline["steps"] = std::move(steps);
  timeline["buffers"] = std::move(buffers);
  return timeline;
}

}  // namespace fl::view
