// Small helpers on Variables.
#pragma once

#include "fl/autograd/Variable.h"

namespace fl {

// Tensors of equal dtype and shape, max |a - b| below the tolerance. Waits for both values.
bool allClose(const Variable& a, const Variable& b, double absTolerance = 1e-5);

}  // namespace fl
