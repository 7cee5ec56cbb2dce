// Outputs in the memory of parameters that nobody needs any more, so that an update holds one copy
// of what it updates. Relies on Schedule.h; the order of steps keeps what is found here possible,
// and runners use it for parameters that are spare.
#pragma once

#include <vector>

#include "fl/kernel/Schedule.h"

namespace fl::planner {

// Whether a step may find a bad index. Others work in what the run has before the first of them,
// but for some bytes.
bool mayFail(const ir::Step& step);

// That a parameter, an output or a temporary takes.
size_t bytesOfBuffer(const ir::Schedule& schedule, const ir::BufferRef& ref);

// By step, whether it looks up indices and those before it have looked up all of them, within the
// same bounds: a step that is reached finds none that is bad.
std::vector<bool> looksUpAgain(const ir::Schedule& schedule);

// Whether a launch that writes all that anybody needs of `to` may do so in the memory of `from`,
// which has as many bytes and which nobody needs afterwards: of that it reads each element only
// where it writes one, and not in a later sweep. Numbers that a reduction makes are left where they
// are: they are few, and more than that may be computed again of what they would replace.
bool readsWhereItWrites(const ir::Schedule& schedule, const ir::LaunchStep& launch,
                        const ir::BufferRef& from, const ir::BufferRef& to);

// Whether a launch is the epilogue of a call that reads the buffer meanwhile.
bool isReadBeside(const ir::Schedule& schedule, int launch, const ir::BufferRef& buffer);

// For each output the parameters, in their order, in whose memory a run may place it. Once a step
// writes there, no step may find a bad index or run out of memory, as the caller would lose the
// parameter; and none reads the parameter, but for a map that writes the whole output and reads the
// same element, and a scatter, which looks at all of its indices first. A call reads until its
// epilogue ends. Runs that check indices early, as EarlyChecks says, find none that is bad later.
std::vector<std::vector<int>> reusableParameters(const ir::Schedule& schedule,
                                                 bool checksEarly = true);

// Calls whose indices such a run checks before `step`, when none has written over a parameter. Of
// those that look up again what another step looked up it checks none: their indices may be
// computed again behind `step`.
struct EarlyChecks {
  int step = -1;  // if there are any
  std::vector<int> calls;
};
EarlyChecks earlyChecks(const ir::Schedule& schedule);

}  // namespace fl::planner
