#include <algorithm>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Detail.h"
#include "fl/tensor/Sparse.h"

namespace fl {
namespace {

Tensor product2d(const Tensor& lhs, const Tensor& rhs, Dim transposeLhs, Dim transposeRhs) {
  const auto sparse = lhs.sparseMatrix();
  const Dim tf32 = Tf32Scope::isActive() && lhs.type() == dtype::f32;
  if (!sparse)
    return detail::applyOp(ir::Op::Matmul, {lhs, rhs}, {transposeLhs, transposeRhs, tf32});
  FL_USER_CHECK(rhs.ndim() == 2 && lhs.dim(transposeLhs ? 0 : 1) == rhs.dim(transposeRhs ? 1 : 0) &&
                    lhs.type() == rhs.type(),
                describeCall("matmul", ""),
                ": a sparse matrix needs a matrix of its dtype with an equal inner dimension");
  return detail::sparseMatmul(*sparse, transposeLhs, transposeRhs ? transpose(rhs, {1, 0}) : rhs);
}

// A batch of one is none where the other operand has another batch.
Tensor withoutBatchOfOne(const Tensor& tensor, const Tensor& other) {
  const std::vector<Dim>&dims = tensor.shape().get(), &others = other.shape().get();
  const bool differs = dims.size() > 2 && others.size() > 2 &&
                       !std::equal(dims.begin() + 2, dims.end(), others.begin() + 2, others.end());
  const auto isOne = [&] {
    return std::all_of(dims.begin() + 2, dims.end(), [](Dim dim) { return dim == 1; });
  };
  return differs && isOne() ? reshape(tensor, {dims[0], dims[1]}) : tensor;
}

}  // namespace

Tensor TensorBackend::matmul(const Tensor& lhs, const Tensor& rhs, MatrixProperty lhsProp,
                             MatrixProperty rhsProp) {
  checkEnumerator("matmul", "MatrixProperty", lhsProp, MatrixProperty::Transpose);
  checkEnumerator("matmul", "MatrixProperty", rhsProp, MatrixProperty::Transpose);
  const bool row = lhs.ndim() == 1, column = rhs.ndim() == 1;
  FL_USER_CHECK(lhs.ndim() >= 1 && rhs.ndim() >= 1, describeCall("matmul", ""),
                ": scalars have no inner dimension");
  const Tensor left = row ? reshape(lhs, {1, lhs.dim(0)}) : withoutBatchOfOne(lhs, rhs);
  const Tensor right = column ? reshape(rhs, {rhs.dim(0), 1}) : withoutBatchOfOne(rhs, lhs);
  const Dim transposeLhs = !row && lhsProp == MatrixProperty::Transpose;
  const Dim transposeRhs = !column && rhsProp == MatrixProperty::Transpose;
  const Tensor product = product2d(left, right, transposeLhs, transposeRhs);
  if (!row && !column) return product;
  // A vector's own dimension goes; two vectors leave (1).
  Shape shape = product.shape();
  if (column) shape.get().erase(shape.get().begin() + 1);
  if (row && shape.ndim() > 1) shape.get().erase(shape.get().begin());
  return reshape(product, shape);
}

}  // namespace fl
