// What a pass decides or places is made wrong in a way that nothing verifies, for tests of what
// finds it. Passes over the graph have their own lines for that (unlessWrong).
#include "fl/codegen/Passes.h"

namespace fl::codegen {
namespace {

// A parameter that a group reads is taken for another one of its type.
void mistakeParameter(const ir::Graph& graph, FusionPlan* plan) {
  const auto count = static_cast<ValueId>(graph.parameters().size());
  for (ValueId id = 1; id < count; ++id) {
    for (ValueId other = 0; other < id && !graph.isNumber(id); ++other) {
      if (graph.parameters()[other] == graph.parameters()[id]) {
        plan->values[id].base = other;
        return;
      }
    }
  }
}

// The first launch with two operands of one form, both read, reads one of them for the other.
void mistakeOperand(ir::Schedule* schedule) {
  for (ir::Step& step : schedule->steps) {
    auto* launch = std::get_if<ir::LaunchStep>(&step);
    if (!launch || launch->epilogue) continue;
    const auto& forms = schedule->kernels[launch->kernel].operands;
    for (size_t i = 1; i < forms.size(); ++i) {
      if (forms[i].role != ir::KernelOperand::Role::Input || forms[i] != forms[0]) continue;
      launch->operands[i] = launch->operands[0];
      return;
    }
  }
}

}  // namespace

void miscompile(const std::string& stage, Compilation& compilation) {
  if (stage == "fusion" && compilation.fusion.enabled) {
    mistakeParameter(compilation.graph, &compilation.fusion);
  } else if (stage == "schedule") {
    mistakeOperand(&compilation.schedule);
  }
}

}  // namespace fl::codegen
