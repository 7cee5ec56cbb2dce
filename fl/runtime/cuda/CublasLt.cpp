#include "fl/runtime/cuda/CublasLt.h"

#include <cuda.h>

namespace fl::runtime::cuda {

LibraryTable<CublasLt>& cublasLt() {
  static auto& table = *new LibraryTable<CublasLt>("cublasLt", CUDA_VERSION / 1000, CUDA_VERSION,
                                                   [](CudaLibrary& library, CublasLt& table) {
#define FL_CUBLASLT(function) \
  table.function = reinterpret_cast<decltype(table.function)>(library.find(#function));
#include "fl/runtime/cuda/CublasLt.def"
#undef FL_CUBLASLT
                                                   });
  return table;
}

}  // namespace fl::runtime::cuda
