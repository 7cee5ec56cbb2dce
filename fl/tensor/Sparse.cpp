#include "fl/tensor/Sparse.h"

#include <algorithm>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Detail.h"

namespace fl::detail {
namespace {

// Which of `lines` lines each of n elements is in, given where each line begins: an element is in
// as many lines as begin at or before it, but the first. The offsets are read at the call: nothing
// that is computed from them would show a wrong one.
Tensor expandOffsets(const Tensor& offsets, Dim lines, Dim n) {
  const std::vector<long long> places = offsets.toHostVector<long long>();
  FL_USER_CHECK(
      places.front() == 0 && places.back() == n && std::is_sorted(places.begin(), places.end()),
      "Tensor: the offsets of a sparse matrix with ", n, " values must rise from 0 to ", n);
  Tensor begins = zeros({n + 1}, dtype::s64);
  if (lines > 1) begins(offsets(range(1, lines))) += 1LL;
  return n == 0 ? zeros({0}, dtype::s64) : cumsum(begins, 0)(range(0, n)).copy();
}

// The indices themselves; one that is not below `bound` is an error of the realize, which begins
// with `name` and has the line of this call.
Tensor checked(const char* name, const Tensor& indices, Dim bound) {
  CallSite site = currentCallSite();
  site.set(site.address(), name);
  const CallSiteOverride named(site);
  return applyOp(ir::Op::Gather, {arange(Shape({bound}), 0, dtype::s64), indices}, {0, 0});
}

// In the dtype of products and sums: those of 16-bit floats are rounded once, as dense ones are.
Tensor widened(const Tensor& x) { return castTo(x, computeType(x.type())); }

}  // namespace

SparseMatrix makeSparse(Dim rows, Dim columns, const Tensor& values, const Tensor& rowIdx,
                        const Tensor& colIdx, StorageType storage) {
  FL_USER_CHECK(rows >= 0 && columns >= 0, "Tensor: a sparse matrix of ", Shape({rows, columns}),
                ": a size is negative");
  checkEnumerator("Tensor", "StorageType", storage, StorageType::COO);
  const Dim n = values.elements();
  bytesOf(values.type(), {rows, columns});  // throws if they cannot be counted
  const Dim rowCount = storage == StorageType::CSR ? rows + 1 : n;
  const Dim columnCount = storage == StorageType::CSC ? columns + 1 : n;
  FL_USER_CHECK(storage != StorageType::Dense, "Tensor: a sparse matrix is CSR, CSC or COO");
  FL_USER_CHECK(rowIdx.shape().elements() == rowCount && colIdx.shape().elements() == columnCount,
                "Tensor: a sparse matrix of ", Shape({rows, columns}), " with ", n,
                " values needs ", rowCount, " row and ", columnCount, " column indices, not ",
                rowIdx.elements(), " and ", colIdx.elements());
  const auto wrong = [](const Tensor& i) { return isFloating(i.type()) && !i.isEmpty(); };
  FL_USER_CHECK(!wrong(rowIdx) && !wrong(colIdx),
                "Tensor: a sparse matrix needs integer indices, not ", rowIdx.type(), " and ",
                colIdx.type());
  const Tensor row = castTo(rowIdx.flatten(), dtype::s64);
  const Tensor column = castTo(colIdx.flatten(), dtype::s64);
  return {Shape({rows, columns}), values.flatten(),
          storage == StorageType::CSR ? expandOffsets(row, rows, n)
                                      : checked("Tensor: row of a sparse matrix", row, rows),
          storage == StorageType::CSC
              ? expandOffsets(column, columns, n)
              : checked("Tensor: column of a sparse matrix", column, columns)};
}

TensorValue toDense(const SparseMatrix& matrix) {
  const Tensor values = widened(matrix.values);
  const Tensor flat = zeros({matrix.shape.elements()}, values.type());
  const Tensor places = matrix.rows + matrix.columns * static_cast<long long>(matrix.shape[0]);
  const Tensor filled = applyOp(ir::Op::ScatterAdd, {flat, places, values}, {0});
  return reshapeValue(castTo(filled, matrix.values.type()).value(), matrix.shape);
}

// Long rows of the dense matrix become lines of neighbours, which are looked up and added whole.
Tensor sparseMatmul(const SparseMatrix& matrix, bool transpose, const Tensor& dense) {
  const Dim axis = dense.dim(1) >= 16;
  const auto turned = [axis](const Tensor& x) { return axis == 1 ? fl::transpose(x) : x; };
  const auto column = [&](const Tensor& x) { return turned(reshape(x, {x.dim(0), 1})); };
  const Tensor from = column(transpose ? matrix.rows : matrix.columns);
  const Tensor to = column(transpose ? matrix.columns : matrix.rows);
  const Tensor factors = widened(applyOp(ir::Op::Gather, {turned(dense), from}, {axis, 0}));
  const Tensor products = factors * column(widened(matrix.values));
  Shape shape = products.shape();
  shape[axis] = matrix.shape[transpose ? 1 : 0];
  const Tensor none = zeros(shape, products.type());
  const Tensor sums = applyOp(ir::Op::ScatterAdd, {none, to, products}, {axis});
  return castTo(turned(sums), dense.type());
}

}  // namespace fl::detail
