// What may be added to the compiler from outside of the tree, beside packers and orders of steps
// (fl/planner/Extensions.h) and emitters (fl/codegen/cpu/Emitter.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fl/codegen/Compilation.h"
#include "fl/ir/Slot.h"

namespace fl::codegen {

// A pass. It changes what the pass that it stands beside changes: the graph, the fusion plan or the
// schedule. What it leaves is verified each time; where that does not hold, or if it throws, the
// plan runs operator by operator, and the warning names the pass.
struct PassExtension {
  std::string name;
  int version = 1;
  // Behind the pass of this name, and ahead of the table's next one; or, if it is empty, ahead of
  // the pass `before`, and behind the table's last one ahead of that. Given both, it stands between
  // them. These are passes of the table, or were added before. Those that stand at one such place
  // are in the order of adding, but where these names want another.
  std::string after, before;
  std::string why;  // a sentence for `fl opt --list`, of an `fl` that has it (//tools:fl_main)
  std::function<void(Compilation&)> run;
};
// Throws std::invalid_argument for a name that is taken, if there is no such pass, for a circle of
// passes each of which has to stand behind the next one, which it names, and if one stands beside a
// pass that was `removed`.
void verifyList(const std::vector<PassExtension>& passes, const std::string& removed);
inline auto& addedPasses() { return ir::slotOf("pass", &PassExtension::run); }
inline void addPass(PassExtension pass) { addedPasses().add(std::move(pass)); }

// Whether nodes, in ascending order, may share a kernel: all rules have to allow it. Asked for
// every kernel that fusion thinks of, also with nodes that a kernel would compute again.
struct FusionRule {
  std::string name;
  int version = 1;
  std::function<bool(const ir::Graph& graph, const std::vector<ir::ValueId>& nodes)> allows;
};
inline auto& fusionRules() { return ir::slotOf("fusion rule", &FusionRule::allows); }

// Milliseconds of compiling a kernel of these nodes and so many loads; kernels beyond ten are not
// fused. Of several models and ours the largest holds.
struct CostModel {
  std::string name;
  int version = 1;
  std::function<double(const ir::Graph& graph, const std::vector<ir::ValueId>& nodes, size_t loads)>
      milliseconds;
};
inline auto& costModels() { return ir::slotOf("cost model", &CostModel::milliseconds); }

// Names and versions of all that takes part in making plans.
std::string extensionsKey();

}  // namespace fl::codegen
