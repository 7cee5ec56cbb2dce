// What is told of plans that run: a line of the log, and what a budget does not bound.
#pragma once

#include <cstddef>
#include <string>

#include "fl/base/CallSite.h"
#include "fl/kernel/Schedule.h"

namespace fl::plans {

// "realize: 2 ops -> 1 kernels + 0 calls, ...": a line of FL_LOG=1. `hit` says that the plan was
// there, `site` where the user's program had it run.
std::string describeRun(const char* what, const ir::Schedule& schedule, size_t nodes, bool hit,
                        int compiled, const CallSite& site);

// Warns, once a line, of results beyond a budget, which does not hold for them, but those that may
// be in the memory of parameters. A budget of 0 is none.
void warnOfResults(const ir::Schedule& plan, size_t budget);

}  // namespace fl::plans
