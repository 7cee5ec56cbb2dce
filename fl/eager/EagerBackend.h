// Runs every operator when it is called: the op's own kernel in the tile interpreter, or a library
// call; a composite (fl/tensor/Composite.h) as one plan, which the compiler's passes fuse. No
// machine code is made. Registered as "eager"; programs reach it by that name (FL_BACKEND=eager,
// BackendScope("eager")), so nothing else needs this header.
#pragma once

#include <memory>
#include <string>

#include "fl/tensor/TensorBackend.h"

namespace fl {

// `device` is a name that runtime::makeDevice knows.
std::unique_ptr<TensorBackend> makeEagerBackend(const std::string& device);

}  // namespace fl
