// Edits of a schedule that make it smaller, for `fl reduce`; of a kernel alone, too, which is a
// schedule without steps here. Relies on fl/kernel/Schedule.h.
//
// An edit takes something away and leaves the rest as it is. applyEdit makes a schedule of that:
// what nothing needs any more is dropped; what steps read, and no step before them writes now,
// becomes a parameter; a temporary that is written and not read any more becomes an output.
#pragma once

#include <functional>
#include <optional>
#include <tuple>

#include "fl/kernel/Schedule.h"

namespace fl::tools {

using ScheduleEdit = std::function<void(ir::Schedule* schedule)>;  // may be none

// Nothing if what is left may not run, or is a kernel alone that stores nothing.
std::optional<ir::Schedule> applyEdit(const ir::Schedule& schedule, const ScheduleEdit& edit);

// Steps, instructions, stores, all else that is listed, elements: what is to become smaller, the
// first of them first.
using ScheduleSize = std::tuple<size_t, size_t, size_t, size_t, Dim>;
ScheduleSize sizeOf(ir::Schedule schedule);
size_t storesOf(const ir::Kernel& kernel);

// Edits, of what has the numbers from `begin` to before `end`.
void dropSteps(ir::Schedule* schedule, size_t begin, size_t end);
void dropStores(ir::Kernel* kernel, size_t begin, size_t end);
// Instead of a value its first or last operand of the same dtype is used; instead of one without
// operands, as a load, an earlier one.
void bypass(ir::Kernel* kernel, size_t begin, size_t end, bool last);

}  // namespace fl::tools
