// The kernels that programs make: of every operator that benchmarks/OpCases.h lists, alone, and of
// the training steps of four models (benchmarks/TrainSteps.h). Planned, not run: a few seconds.
#pragma once

#include <vector>

#include "fl/kernel/Kernel.h"

namespace fl::testing {

// No two are equal.
std::vector<ir::Kernel> suiteKernels();

}  // namespace fl::testing
