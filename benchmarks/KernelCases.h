// Chains of operators that are one kernel each where they are fused, forward and with gradients;
// the limit is a copy of the bytes that they must read and write.
#pragma once

#include <vector>

#include "benchmarks/Workload.h"

namespace fl::bench {

std::vector<Workload> kernelCases();

}  // namespace fl::bench
