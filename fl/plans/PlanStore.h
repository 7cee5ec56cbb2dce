// Plans on disk between runs: the text of a graph finds the text of its schedule, so that no pass
// runs for what an earlier process has compiled. Plans of few operators are not kept: their passes
// take less time than a file. Relies on fl/plans/ScheduleStore.h; Engine.h asks it.
#pragma once

#include <memory>

#include "fl/codegen/Compilation.h"
#include "fl/kernel/Schedule.h"
#include "fl/runtime/Store.h"

namespace fl::plans {

// Changes with the passes.
const char* passesHash();

class PlanStore {
 public:
  // As FL_CACHE, FL_CACHE_DIR and FL_CACHE_BYTES are then.
  PlanStore();

  // The schedule of `graph`, kept or compiled, with call sites of its nodes, and what else
  // compiling made, which is nothing if it was kept. Throws what a pass throws.
  codegen::Compilation compile(const ir::Graph& graph, const codegen::CompileOptions& options);

 private:
  const std::unique_ptr<runtime::Store> store_;  // null with FL_CACHE=off
};

}  // namespace fl::plans
