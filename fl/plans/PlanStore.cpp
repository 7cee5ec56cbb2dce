#include "fl/plans/PlanStore.h"

#include "fl/base/Error.h"
#include "fl/base/Flags.h"
#include "fl/base/Log.h"
#include "fl/codegen/Extensions.h"
#include "fl/ir/Text.h"
#include "fl/planner/Planner.h"
#include "fl/plans/PassesHash.h"
#include "fl/plans/ScheduleStore.h"
#include "fl/runtime/Counters.h"

namespace fl::plans {
namespace {

constexpr size_t kFewOperators = 24;

}  // namespace

const char* passesHash() { return kSourceHash; }

PlanStore::PlanStore() : store_(runtime::openStore(runtime::kPlans)) {}

codegen::Compilation PlanStore::compile(const ir::Graph& graph,
                                        const codegen::CompileOptions& options) {
  // Whoever watches the passes, chooses them or has one fail, wants them to run.
  const bool isWatched = options.observe || options.verify || !options.skip.empty() ||
                         !flags().fault.empty() || logEnabled(3);
  if (!store_ || isWatched || graph.nodes().size() < kFewOperators)
    return codegen::compile(graph, options);
  const std::string key = detail::concat(
      passesHash(), "\n", codegen::extensionsKey(), static_cast<int>(options.lowering),
      options.featuresFirst, "\nbudget ", options.budget, " ", options.device.bytesAMove,
      options.trimAll ? "\ntrim all\n" : "\n", ir::printGraph(graph, "g"));
  if (auto kept = findSchedule(*store_, key, graph)) {
    kept->device = options.device;
    // With another library, steps may want more than they were planned with.
    if (!planner::addScratch(&*kept)) {
      runtime::counters().plansLoaded++;
      return {.schedule = std::move(*kept)};
    }
  }
  codegen::Compilation compiled = codegen::compile(graph, options);
  insertSchedule(*store_, key, compiled.schedule, graph);
  return compiled;
}

}  // namespace fl::plans
