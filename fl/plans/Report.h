// What is told of plans that run: a line of the log, and what a budget does not bound.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/check/CheckedPlan.h"
#include "fl/codegen/Compilation.h"
#include "fl/kernel/Schedule.h"

namespace fl::plans {

// "realize: 2 ops -> 1 kernels + 0 calls, ...": a line of FL_LOG=1. `hit` says that the plan was
// there, `site` where the user's program had it run.
std::string describeRun(const char* what, const ir::Schedule& schedule, size_t nodes, bool hit,
                        int compiled, const CallSite& site);

// Warns, once a line, of results beyond a budget, which does not hold for them, but those that may
// be in the memory of parameters. A budget of 0 is none.
void warnOfResults(const ir::Schedule& plan, size_t budget);

// What a plan that runs out of memory would have held: bytes of results and of temporaries, and the
// largest of these that are alive at once, with their operators and lines.
std::string describeNeed(const ir::Schedule& plan);

// What each pass over graphs leaves.
std::vector<check::PassedGraph> byPass(const ir::Graph& graph, codegen::CompileOptions options);

}  // namespace fl::plans
