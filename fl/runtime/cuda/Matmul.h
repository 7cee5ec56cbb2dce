// Matrix products by cuBLASLt, in full precision: 16-bit floats are added up in f32, and f32 is not
// cut to TF32.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fl/ir/Graph.h"
#include "fl/runtime/cuda/Context.h"
#include "fl/runtime/cuda/CublasLt.h"

namespace fl::runtime::cuda {

// Column-major matrices, as cuBLASLt has them.
struct MatmulShape {
  dtype type;
  int64_t m, n, k, batch;
  bool transposeLhs, transposeRhs;
  // Elements from one of the batch to the next; 0 repeats a matrix.
  int64_t lhsStep, rhsStep;
  auto operator<=>(const MatmulShape&) const = default;
};

// Of a call of Op::Matmul; none for other dtypes than floating ones, for empty tensors, and for
// operands that repeat in only a part of their batch dimensions.
std::optional<MatmulShape> matmulShape(const std::vector<ir::ValueType>& operands,
                                       const ir::Attrs& attrs, const ir::ValueType& result);

// What cuBLASLt is told of a product. Needs no GPU.
class MatmulDescription {
 public:
  MatmulDescription(const CublasLt& library, const MatmulShape& shape);
  ~MatmulDescription();
  MatmulDescription(const MatmulDescription&) = delete;

  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t lhs = nullptr, rhs = nullptr, result = nullptr;

 private:
  cublasLtMatrixLayout_t layoutOf(const MatmulShape& shape, int64_t rows, int64_t columns,
                                  int64_t step);

  const CublasLt& library_;
};

// A product with the algorithm that the library thinks best. Thread-safe.
class Matmul {
 public:
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;
  // What cuBLASLt may expect of addresses: every buffer begins at a multiple.
  static constexpr uint32_t kAlignment = 64;

  // From a cache of the process; null if the library has none for it.
  static std::shared_ptr<const Matmul> find(Context& context, const MatmulShape& shape);

  // Puts it into the stream; `workspace` has kWorkspaceBytes. Throws std::runtime_error.
  void run(Context& context, const void* lhs, const void* rhs, void* result, void* workspace) const;

 private:
  Matmul(const CublasLt& library, const MatmulShape& shape);
  bool chooseAlgorithm();

  const CublasLt& library_;
  const MatmulShape shape_;
  const MatmulDescription description_;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

// Of a call; null for other operators, and where the library is not there or has none.
std::shared_ptr<const Matmul> findProduct(Context& context, ir::Op op,
                                          const std::vector<ir::ValueType>& operands,
                                          const ir::Attrs& attrs, const ir::ValueType& result);

}  // namespace fl::runtime::cuda
