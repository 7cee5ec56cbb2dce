// Sparse matrices: values with the row and column of each. Any operator reads one as the dense
// matrix it stands for; matmul works on the values alone.
#pragma once

#include "fl/tensor/TensorBase.h"

namespace fl::detail {

struct SparseMatrix {
  Shape shape;     // rows, columns
  Tensor values;   // (n)
  Tensor rows;     // (n), s64
  Tensor columns;  // (n), s64
};

// From the parts of a storage: CSR holds rows + 1 offsets in place of row indices, CSC columns + 1
// in place of column indices. Throws std::invalid_argument for parts that do not fit.
SparseMatrix makeSparse(Dim rows, Dim columns, const Tensor& values, const Tensor& rowIdx,
                        const Tensor& colIdx, StorageType storage);
// Values at the same place are added, 16-bit floats in f32, as in the product.
TensorValue toDense(const SparseMatrix& matrix);
// matrix x dense, or its transpose's product. Cost is that of a lookup and a scatter of one row of
// `dense` a value.
Tensor sparseMatmul(const SparseMatrix& matrix, bool transpose, const Tensor& dense);

}  // namespace fl::detail
