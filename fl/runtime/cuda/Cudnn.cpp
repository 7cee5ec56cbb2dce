#include "fl/runtime/cuda/Cudnn.h"

#include <cuda.h>

namespace fl::runtime::cuda {

LibraryTable<Cudnn>& cudnn() {
  static auto& table = *new LibraryTable<Cudnn>("cudnn", CUDNN_MAJOR, CUDA_VERSION,
                                                [](CudaLibrary& library, Cudnn& table) {
#define FL_CUDNN(function) \
  table.function = reinterpret_cast<decltype(table.function)>(library.find(#function));
#include "fl/runtime/cuda/Cudnn.def"
#undef FL_CUDNN
                                                });
  return table;
}

}  // namespace fl::runtime::cuda
