#include "fl/planner/Buffers.h"

#include <algorithm>

namespace fl::planner {

using Space = ir::BufferRef::Space;

std::vector<int> temporariesOf(const ir::Schedule& schedule, const ir::Step& step) {
  std::vector<int> temporaries;
  const ir::StepBuffers buffers = stepBuffers(schedule, step);
  for (const auto* refs : {&buffers.reads, &buffers.writes}) {
    for (const ir::BufferRef& ref : *refs) {
      if (ref.space == Space::Temporary) temporaries.push_back(ref.index);
    }
  }
  std::ranges::sort(temporaries);
  temporaries.erase(std::ranges::unique(temporaries).begin(), temporaries.end());
  return temporaries;
}

void renameTemporaries(ir::Step* step, const std::vector<int>& names) {
  const auto rename = [&](ir::BufferRef* ref) {
    ref->index = ref->space == Space::Temporary ? names[ref->index] : ref->index;
  };
  std::visit([&](auto& s) { s.scratch = s.scratch < 0 ? -1 : names[s.scratch]; }, *step);
  if (auto* launch = std::get_if<ir::LaunchStep>(step)) {
    for (ir::LaunchOperand& operand : launch->operands) {
      if (operand.buffer) rename(&*operand.buffer);
    }
  } else {
    auto& call = std::get<ir::LibraryStep>(*step);
    for (ir::BufferPlace& operand : call.operands) rename(&operand.buffer);
    rename(&call.result.buffer);
  }
}

}  // namespace fl::planner
