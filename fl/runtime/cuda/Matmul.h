// Matrix products by cuBLASLt: 16-bit floats are added up in f32, and f32 is cut to TF32 on request
// alone. With a product may come what follows it element by element (Epilogue.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fl/runtime/cuda/Candidates.h"
#include "fl/runtime/cuda/CublasLt.h"
#include "fl/runtime/cuda/Epilogue.h"

namespace fl::runtime::cuda {

// Column-major matrices, as cuBLASLt has them.
struct MatmulShape {
  dtype type;
  int64_t m, n, k, batch;
  bool transposeLhs, transposeRhs;
  // Elements from one of the batch to the next; 0 repeats a matrix.
  int64_t lhsStep, rhsStep;
  Epilogue epilogue = {};
  bool tf32 = false;
  auto operator<=>(const MatmulShape&) const = default;
};

// Of a call of Op::Matmul; none for other dtypes than floating ones, for empty tensors, and for
// operands that repeat in only a part of their batch dimensions.
std::optional<MatmulShape> matmulShape(const std::vector<ir::ValueType>& operands,
                                       const ir::Attrs& attrs, const ir::ValueType& result);

// What cuBLASLt is told of a product. Needs no GPU.
class MatmulDescription {
 public:
  // What it may expect of addresses: every buffer begins at a multiple.
  static constexpr uint32_t kAlignment = 64;

  MatmulDescription(const CublasLt& library, const MatmulShape& shape);
  ~MatmulDescription();
  MatmulDescription(const MatmulDescription&) = delete;

  // Where the epilogue's operands lie in the next call.
  void setEpilogue(const void* bias, const void* auxiliary);

  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t lhs = nullptr, rhs = nullptr, result = nullptr;

 private:
  cublasLtMatrixLayout_t layoutOf(const MatmulShape& shape, int64_t rows, int64_t columns,
                                  int64_t step);
  template <class T>
  void set(cublasLtMatmulDescAttributes_t which, T value);

  const CublasLt& library_;
  const Epilogue epilogue_;
};

// A product by the fastest of the library's algorithms.
class Matmul final : public MeasuredCall {
 public:
  // From a cache of the process; null if the library has none for it, or is not there.
  static std::shared_ptr<const Matmul> find(Context& context, const MatmulShape& shape);

  using MeasuredCall::MeasuredCall;
  void run(Context& context, void* const* operands, void* result, void* workspace) const override {
    run(context, operands, result, workspace, nullptr, nullptr);
  }
  void run(Context& context, void* const* operands, void* result, void* workspace, const void* bias,
           const void* auxiliary) const {
    void* const all[] = {operands[0], operands[1], const_cast<void*>(bias),
                         const_cast<void*>(auxiliary)};
    MeasuredCall::run(context, all, result, workspace);
  }
};

}  // namespace fl::runtime::cuda
