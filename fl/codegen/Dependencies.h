// Which orders of steps compute the same.
#pragma once

#include <vector>

#include "fl/kernel/Schedule.h"

namespace fl::codegen {

// Step i must run after all of dependencies[i], in ascending order: readers after the writer,
// writers after the writer and its readers, also of a parameter in whose memory they may write.
// What comes before a writer comes before those after it, too.
std::vector<std::vector<int>> dependencies(const ir::Schedule& schedule);

}  // namespace fl::codegen
