// Makes a kernel alone runnable: a schedule that launches it once, in dense memory. Program.h says
// how operands become parameters and results.
#pragma once

#include <string>
#include <vector>

#include "fl/kernel/Schedule.h"

namespace fl::tools {

// `extents` has one a axis, or is empty: 16 each. Throws std::invalid_argument that begins with
// `path` for a wrong number of extents, and for a kernel with a gather: what it may read is known
// to a launch only.
ir::Schedule launchOnce(const std::string& path, const ir::Kernel& kernel,
                        std::vector<Dim> extents);

}  // namespace fl::tools
