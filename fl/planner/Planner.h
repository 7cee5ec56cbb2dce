// The passes that plan a schedule before it runs: in which order its steps go, what runs as one,
// and where its temporaries lie. Each changes the schedule and keeps what it computes.
#pragma once

#include <stdexcept>

#include "fl/kernel/Schedule.h"

namespace fl::planner {

// No order and no recomputation that was found keeps a plan within its budget: says how much it
// needs at which step and line, a budget that is met, and which values are the largest there.
struct OverBudget : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Gives each step as much scratch memory as the schedule's device wants for it, a temporary that
// lives while the step and its epilogue run. Returns whether any had less.
bool addScratch(ir::Schedule* schedule);
// An order in which less memory is alive at once, if one is found; sets lifetimes, and what would
// be alive in the recorded order and without any plan.
void orderSteps(ir::Schedule* schedule);
// Computes values again rather than keep them, or moves them to the host where the device has
// memory of its own, until the arena takes no more than the schedule's budget. Throws OverBudget if
// there is no way. Without a budget, as far as that costs at most 3 % of the plan's time, by the
// bytes it moves and the products it computes; all that it can, if it says so.
void meetBudget(ir::Schedule* schedule);
// Brings launches of one kernel that do not need one another together, where no more is alive then
// than in the order recorded.
void joinLaunches(ir::Schedule* schedule);
// Maps write in the memory of temporaries that they are the last to read.
void shareMemory(ir::Schedule* schedule);
// Makes launches that follow a library call its epilogue, where that needs no more memory but the
// scratch memory that the device wants for both.
void attachEpilogues(ir::Schedule* schedule);
// Places temporaries in the arena. Throws OverBudget if that takes more than the budget.
void packTemporaries(ir::Schedule* schedule);

}  // namespace fl::planner
