#include "fl/plans/Explain.h"

#include "fl/base/Error.h"
#include "fl/codegen/Extensions.h"
#include "fl/plans/Difference.h"

namespace fl::plans {

constexpr size_t kMaxKnown = 256;

const PlanHistory::Known* PlanHistory::nearest(const Known& plan) const {
  const Known* best = nullptr;
  size_t most = 0;
  for (const Known& known : known_) {
    const size_t same = 3 * equalNodes(plan.graph, known.graph) + (plan.budget == known.budget) +
                        (plan.extensions == known.extensions);
    if (same >= most) {
      most = same;
      best = &known;
    }
  }
  return best;
}

std::string PlanHistory::firstDifference(const Known& now, const Known& before) {
  const std::string difference = plans::firstDifference(now.graph, before.graph);
  const auto at = [](const Known& plan) { return " at " + plan.site.toString(); };
  if (!difference.empty()) return difference;
  if (now.budget != before.budget) {
    return detail::concat("the memory budget is ", now.budget, at(now), " and was ", before.budget,
                          at(before));
  }
  if (now.extensions != before.extensions) {
    return detail::concat("the compiler's extensions", at(now), " are\n", now.extensions, "and",
                          at(before), " were\n", before.extensions);
  }
  return "its plan was dropped: too many others, or extensions, came after it";
}

std::string PlanHistory::explain(const ir::Graph& graph, size_t budget) {
  Known plan{graph, budget, codegen::extensionsKey(), currentCallSite()};
  const Known* before = nearest(plan);
  const std::string reason = before ? firstDifference(plan, *before) : "it is the first";
  known_.push_back(std::move(plan));
  if (known_.size() > kMaxKnown) known_.pop_front();
  return detail::concat("a plan of ", graph.nodes().size(), " operators is new: ", reason);
}

}  // namespace fl::plans
