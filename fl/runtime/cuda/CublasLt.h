// cuBLASLt's functions as a table (LibraryTable.h); opening it takes 0.2 s.
#pragma once

#include <cublasLt.h>

#include "fl/runtime/cuda/LibraryTable.h"

namespace fl::runtime::cuda {

struct CublasLt {
#define FL_CUBLASLT(function) decltype(&::function) function = nullptr;
#include "fl/runtime/cuda/CublasLt.def"
#undef FL_CUBLASLT
};

LibraryTable<CublasLt>& cublasLt();

}  // namespace fl::runtime::cuda
