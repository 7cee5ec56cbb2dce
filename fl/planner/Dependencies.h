// Which orders of steps compute the same.
#pragma once

#include <vector>

#include "fl/kernel/Schedule.h"

namespace fl::planner {

// Step i must run after all of dependencies[i], in ascending order: readers after the writer,
// writers after the writer and its readers. What may be written in the memory of a parameter comes
// after the parameter's readers and after steps that may fail.
// What comes before a writer comes before those after it, too.
std::vector<std::vector<int>> dependencies(const ir::Schedule& schedule);

}  // namespace fl::planner
