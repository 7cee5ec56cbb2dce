// Scatter and ScatterAdd by the kernel of fl/kernel/cuda/Scatter.h, which is compiled once in a
// process for each dtype.
#pragma once

#include <memory>

#include "fl/kernel/cuda/Scatter.h"
#include "fl/runtime/cuda/DeviceCall.h"

namespace fl::runtime::cuda {

// Null where there is no code: the host stands in.
std::shared_ptr<const DeviceCall> findScatter(Context& context, ir::Op op, dtype type,
                                              const ir::cuda::ScatterShape& shape);

}  // namespace fl::runtime::cuda
