// Sparse matrices in their three storages: the dense matrix they stand for, products, copies.
#include <gmock/gmock.h>

#include "fl/fl.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

using test::errorOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor ints(std::vector<int> values) { return Tensor::fromVector(std::move(values)); }

//  0 2 0 0
//  1 0 0 3
//  0 0 0 4
std::vector<Tensor> sameMatrix() {
  const Tensor byRow = Tensor::fromVector(std::vector<float>{2, 1, 3, 4});
  const Tensor byColumn = Tensor::fromVector(std::vector<float>{1, 2, 3, 4});
  return {Tensor(3, 4, byRow, ints({0, 1, 3, 4}), ints({1, 0, 3, 3}), StorageType::CSR),
          Tensor(3, 4, byColumn, ints({1, 0, 1, 2}), ints({0, 1, 2, 2, 4}), StorageType::CSC),
          Tensor(3, 4, byRow, ints({0, 1, 1, 2}), ints({1, 0, 3, 3}), StorageType::COO)};
}

TEST(Sparse, StandsForADenseMatrix) {
  for (const Tensor& matrix : sameMatrix()) {
    EXPECT_TRUE(matrix.isSparse());
    EXPECT_EQ(matrix.shape(), Shape({3, 4}));
    EXPECT_EQ(matrix.type(), dtype::f32);
    EXPECT_THAT(matrix.toHostVector<float>(), ElementsAre(0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 3, 4));
    EXPECT_THAT((matrix + 1.0)(span, 3).toHostVector<float>(), ElementsAre(1, 4, 5));
    EXPECT_THAT(matrix(1).toHostVector<float>(), ElementsAre(1, 0, 0, 3));
  }
}

TEST(Sparse, Products) {
  const Tensor dense = iota({4, 2}), tall = iota({3, 2});
  for (const Tensor& matrix : sameMatrix()) {
    EXPECT_THAT(matmul(matrix, dense).toHostVector<float>(), ElementsAre(2, 9, 12, 10, 25, 28));
    EXPECT_THAT(matmul(matrix, tall, MatrixProperty::Transpose).toHostVector<float>(),
                ElementsAre(1, 0, 0, 11, 4, 6, 0, 32));
    EXPECT_THAT(matmul(matrix, transpose(dense), MatrixProperty::None, MatrixProperty::Transpose)
                    .toHostVector<float>(),
                ElementsAre(2, 9, 12, 10, 25, 28));
    EXPECT_THAT(matmul(matrix, iota({4})).toHostVector<float>(), ElementsAre(2, 9, 12));
    EXPECT_THAT(matmul(transpose(tall), matrix).shape(), Shape({2, 4}));
  }
}

TEST(Sparse, CopiesStaySparseUntilTheyAreWritten) {
  const Tensor matrix = sameMatrix()[0];
  Tensor copy = matrix;
  EXPECT_TRUE(copy.isSparse());
  copy(0, 0) = 9.0;
  EXPECT_FALSE(copy.isSparse());
  EXPECT_EQ(copy.flat(0).scalar<float>(), 9);
  EXPECT_TRUE(matrix.isSparse());
  EXPECT_EQ(matrix.flat(0).scalar<float>(), 0);
  Tensor other;
  other = matrix;
  EXPECT_TRUE(other.isSparse());
  other += 1.0;
  EXPECT_FALSE(other.isSparse());
}

TEST(Sparse, AddsWhatIsAtOnePlace) {
  const Tensor matrix(2, 2, Tensor::fromVector(std::vector<double>{1, 2, 4}), ints({1, 1, 0}),
                      ints({0, 0, 1}), StorageType::COO);
  EXPECT_THAT(matrix.toHostVector<double>(), ElementsAre(0, 3, 4, 0));
  EXPECT_THAT(matmul(matrix, identity(2, dtype::f64)).toHostVector<double>(),
              ElementsAre(0, 3, 4, 0));
}

TEST(Sparse, OfNothing) {
  const Tensor none = Tensor::fromVector(Shape({0}), std::vector<float>());
  const Tensor matrix(2, 3, none, ints({0, 0, 0}), none, StorageType::CSR);
  EXPECT_THAT(matrix.toHostVector<float>(), ::testing::Each(0));
  EXPECT_THAT(matmul(matrix, iota({3, 1})).toHostVector<float>(), ElementsAre(0, 0));
}

TEST(Sparse, Misuse) {
  const Tensor values = Tensor::fromVector(std::vector<float>{1, 2});
  EXPECT_THAT(errorOf([&] { Tensor(2, 2, values, ints({0, 1}), ints({0, 1}), StorageType::CSR); }),
              HasSubstr("needs 3 row and 2 column indices, not 2 and 2"));
  EXPECT_THAT(errorOf([&] { Tensor(2, 2, values, values, values, StorageType::Dense); }),
              HasSubstr("a sparse matrix is CSR, CSC or COO"));
  const Tensor matrix(2, 2, values, ints({0, 1}), ints({0, 1}), StorageType::COO);
  EXPECT_THAT(errorOf([&] { matmul(matrix, iota({3, 2})); }),
              HasSubstr("matmul: f32[2,2] x f32[3,2]: a sparse matrix needs a matrix"));
  EXPECT_THAT(
      errorOf([&] {
        Tensor(2, 2, values, ints({0, 2}), ints({0, 1}), StorageType::COO).toHostVector<float>();
      }),
      HasSubstr("Tensor: row of a sparse matrix: s64[2]: 2 is out of range for dimension 0 of 2 "
                "elements, at "));
}

}  // namespace
}  // namespace fl
