// cuDNN's functions as a table (LibraryTable.h).
#pragma once

#include <cudnn.h>

#include "fl/runtime/cuda/LibraryTable.h"

namespace fl::runtime::cuda {

struct Cudnn {
#define FL_CUDNN(function) decltype(&::function) function = nullptr;
#include "fl/runtime/cuda/Cudnn.def"
#undef FL_CUDNN
};

LibraryTable<Cudnn>& cudnn();

}  // namespace fl::runtime::cuda
