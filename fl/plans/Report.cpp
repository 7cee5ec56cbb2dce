#include "fl/plans/Report.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "absl/strings/str_format.h"
#include "fl/base/Error.h"
#include "fl/base/Log.h"
#include "fl/planner/Memory.h"
#include "fl/planner/Reuse.h"

namespace fl::plans {

std::string describeRun(const char* what, const ir::Schedule& schedule, size_t nodes, bool hit,
                        int compiled, const CallSite& site) {
  size_t launches = 0;
  for (const ir::Step& step : schedule.steps)
    launches += std::holds_alternative<ir::LaunchStep>(step);
  const std::string where = site.toString();
  const double arena = std::max(1.0, static_cast<double>(schedule.arenaBytes));
  const double bound = std::max(1.0, static_cast<double>(schedule.arenaBound));
  return detail::concat(
      what, ": ", nodes, " ops -> ", launches, " kernels + ", schedule.steps.size() - launches,
      " calls, compiled=", compiled, ", arena ", schedule.arenaBytes, " B (bound ",
      schedule.arenaBound, " B, ratio ", absl::StrFormat("%.3f", arena / bound), ", recorded ",
      schedule.recordedBound, " B, unplanned ", schedule.unplannedBytes, " B), plan ",
      hit ? "reused" : "built", where.empty() ? "" : ", at ", where);
}

void warnOfResults(const ir::Schedule& plan, size_t budget) {
  static auto& told = *new CallSites();
  if (budget == 0) return;
  const std::vector<std::vector<int>> reusable = planner::reusableParameters(plan);
  size_t bytes = 0;
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const auto& [type, shared, source, over] = plan.outputs[i];
    if (!shared && reusable[i].empty()) bytes += bytesOf(type.type, type.shape);
  }
  const CallSite site = currentCallSite();
  if (bytes <= budget || !told.insert(site)) return;
  logWarning(detail::concat(
      "the results of a plan take ", bytes, " bytes beside the memory budget of ", budget,
      ", which bounds what dies in it: what lives on, as tensors that the program keeps or the "
      "history of a loss that is read before backward(), is not computed again; at ",
      site.toString()));
}

std::string describeNeed(const ir::Schedule& plan) {
  size_t results = 0;
  for (const ir::ScheduleOutput& output : plan.outputs)
    results += output.shared ? 0 : bytesOf(output.type.type, output.type.shape);
  return detail::concat("\nThe plan holds up to ", plan.arenaBytes + results, " bytes: ", results,
                        " of results, and ", plan.arenaBytes,
                        " of temporaries, of which are the largest alive at once:",
                        planner::describeLargestAlive(plan));
}

std::vector<check::PassedGraph> byPass(const ir::Graph& graph, codegen::CompileOptions options) {
  options.observe = nullptr;
  std::vector<check::PassedGraph> passed;
  for (const codegen::PassInfo& pass : codegen::passes()) {
    if (pass.stage != "graph") continue;
    options.stopAfter = pass.name;
    passed.push_back({pass.name, codegen::compile(graph, options).graph});
  }
  return passed;
}

}  // namespace fl::plans
