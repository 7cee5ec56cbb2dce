// The toolkit's own cuBLASLt, which describes without a GPU what it computes on one.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include "fl/base/CudaLibrary.h"
#include "fl/runtime/cuda/CublasLt.h"

namespace fl::testing {

inline const runtime::cuda::CublasLt& realCublasLt() {
  static const auto& table = *[] {
    auto* table = new runtime::cuda::CublasLt();
    CudaLibrary library("cublasLt", CUDA_VERSION / 1000, CUDA_VERSION);
#define FL_CUBLASLT(function) \
  table->function = reinterpret_cast<decltype(table->function)>(library.find(#function));
#include "fl/runtime/cuda/CublasLt.def"
#undef FL_CUBLASLT
    EXPECT_EQ(library.problem(), "");
    return table;
  }();
  return table;
}

template <class T>
T attributeOf(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t which) {
  T value = {};
  size_t written = 0;
  EXPECT_EQ(realCublasLt().cublasLtMatmulDescGetAttribute(operation, which, &value, sizeof(value),
                                                          &written),
            CUBLAS_STATUS_SUCCESS);
  return value;
}
template <class T>
T attributeOf(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t which) {
  T value = {};
  size_t written = 0;
  EXPECT_EQ(realCublasLt().cublasLtMatrixLayoutGetAttribute(layout, which, &value, sizeof(value),
                                                            &written),
            CUBLAS_STATUS_SUCCESS);
  return value;
}

}  // namespace fl::testing
