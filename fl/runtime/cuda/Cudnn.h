// cuDNN's functions as a table (LibraryTable.h).
#pragma once

#include <cuda.h>
#include <cudnn.h>

#include "fl/runtime/cuda/LibraryTable.h"

namespace fl::runtime::cuda {

struct Cudnn {
#define FL_CUDNN(function) decltype(&::function) function = nullptr;
#include "fl/runtime/cuda/Cudnn.def"
#undef FL_CUDNN
};

inline LibraryTable<Cudnn>& cudnn() {
  static auto& table = *new LibraryTable<Cudnn>("cudnn", CUDNN_MAJOR, CUDA_VERSION, "convolutions",
                                                [](CudaLibrary& library, Cudnn& table) {
#define FL_CUDNN(function) \
  table.function = reinterpret_cast<decltype(table.function)>(library.find(#function));
#include "fl/runtime/cuda/Cudnn.def"
#undef FL_CUDNN
                                                });
  return table;
}

}  // namespace fl::runtime::cuda
