// The passes that plan a schedule before it runs: in which order its steps go, what runs as one,
// and where its temporaries lie. Each changes the schedule and keeps what it computes.
#pragma once

#include "fl/kernel/Schedule.h"

namespace fl::planner {

// An order in which less memory is alive at once, if one is found; sets lifetimes.
void orderSteps(ir::Schedule* schedule);
// Brings launches of one kernel that do not need one another together.
void joinLaunches(ir::Schedule* schedule);
// Makes launches that follow a library call its epilogue, where that needs no more memory.
void attachEpilogues(ir::Schedule* schedule);
// Places temporaries in the arena.
void packTemporaries(ir::Schedule* schedule);

}  // namespace fl::planner
