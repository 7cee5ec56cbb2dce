// Random tensors. Each call takes the next offset of a process-wide stream at the call, in program
// order, so that results depend on setSeed and call order, never on when or where they are
// computed.
#pragma once

#include "fl/tensor/TensorBase.h"

namespace fl {

void setSeed(const int seed);
// Standard normal (Box-Muller of two uniforms); floating dtypes.
Tensor randn(const Shape& shape, dtype type = dtype::f32);
// Floats uniform in (0, 1]; integers of any value, b8 0 or 1.
Tensor rand(const Shape& shape, dtype type = dtype::f32);

}  // namespace fl
