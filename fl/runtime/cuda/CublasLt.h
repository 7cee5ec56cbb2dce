// cuBLASLt's functions as a table (LibraryTable.h); opening it takes 0.2 s.
#pragma once

#include <cublasLt.h>
#include <cuda.h>

#include "fl/library/cuda/LibraryTable.h"

namespace fl::runtime::cuda {

struct CublasLt {
#define FL_CUBLASLT(function) decltype(&::function) function = nullptr;
#include "fl/runtime/cuda/CublasLt.def"
#undef FL_CUBLASLT
};

inline library::cuda::LibraryTable<CublasLt>& cublasLt() {
  static auto& table = *new library::cuda::LibraryTable<CublasLt>(
      "cublasLt", CUDA_VERSION / 1000, CUDA_VERSION, "products",
      [](CudaLibrary& library, CublasLt& table) {
#define FL_CUBLASLT(function) \
  table.function = reinterpret_cast<decltype(table.function)>(library.find(#function));
#include "fl/runtime/cuda/CublasLt.def"
#undef FL_CUBLASLT
      });
  return table;
}

}  // namespace fl::runtime::cuda
