// When computation happens.
#pragma once

#include "fl/tensor/TensorBase.h"

namespace fl {

// Waits until all recorded work of all threads is done.
void sync();
// Ends the pending segment; does not block.
void eval(Tensor& tensor);

}  // namespace fl
