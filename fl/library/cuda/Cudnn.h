// cuDNN's functions as a table (LibraryTable.h).
#pragma once

#include <cuda.h>
#include <cudnn.h>

#include "fl/library/cuda/LibraryTable.h"

namespace fl::library::cuda {

struct Cudnn {
#define FL_CUDNN(function) decltype(&::function) function = nullptr;
#include "fl/library/cuda/Cudnn.def"
#undef FL_CUDNN
};

inline LibraryTable<Cudnn>& cudnn() {
  static auto& table = *new LibraryTable<Cudnn>("cudnn", CUDNN_MAJOR, CUDA_VERSION,
                                                "convolutions and 16-bit attention",
                                                [](CudaLibrary& library, Cudnn& table) {
#define FL_CUDNN(function) \
  table.function = reinterpret_cast<decltype(table.function)>(library.find(#function));
#include "fl/library/cuda/Cudnn.def"
#undef FL_CUDNN
                                                });
  return table;
}

}  // namespace fl::library::cuda
