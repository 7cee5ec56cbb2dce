// Sparse matrices in their three storages: the dense matrix they stand for, products, copies.
#include <gmock/gmock.h>

#include <cmath>

#include "fl/fl.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

using test::errorOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor ints(std::vector<int> values) { return Tensor::fromVector(std::move(values)); }

double rounded(double value, dtype type) { return full({1}, value, type).asScalar<double>(); }

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

// So long that a sum that is rounded at each step stops growing, and so small that sums of float
// are exact.
TEST(Sparse, SumsOfNarrowFloatsAreRoundedOnce) {
  constexpr int n = 4096;
  std::vector<double> values, factors;
  double sum = 0, product = 0;
  for (int i = 0; i < n; ++i) {
    values.push_back((i % 7 + 1) / 8.0);
    factors.push_back((i % 5 + 1) / 4.0);
    sum += values[i];
    product += values[i] * factors[i];
  }
  const Tensor places = arange({n}, 0, dtype::s32), zeros = full({n}, 0), ends = ints({0, n});
  for (const dtype type : {dtype::f16, dtype::bf16}) {
    const Tensor x = Tensor::fromVector({n}, values, type);
    const Tensor y = Tensor::fromVector({n, 1}, factors, type);
    const Tensor oneElement(1, 1, x, zeros, zeros, StorageType::COO);
    EXPECT_EQ(oneElement.type(), type);
    EXPECT_EQ(oneElement.asScalar<double>(), rounded(sum, type)) << type;
    const Tensor row(1, n, x, ends, places, StorageType::CSR);
    EXPECT_EQ(matmul(row, y).type(), type);
    EXPECT_EQ(matmul(row, y).asScalar<double>(), rounded(product, type)) << type;
    const Tensor column(n, 1, x, places, ends, StorageType::CSC);
    EXPECT_EQ(matmul(column, y, MatrixProperty::Transpose).asScalar<double>(),
              rounded(product, type))
        << type;
  }
}

// (1 + e)^2 - (1 + 2 e) = e^2, which is lost if the square is rounded to its dtype, of epsilon e.
TEST(Sparse, ProductsOfNarrowFloatsAreNotRounded) {
  for (const auto& [type, e] :
       {std::pair(dtype::f16, std::ldexp(1, -10)), std::pair(dtype::bf16, std::ldexp(1, -7))}) {
    const Tensor x = Tensor::fromVector({2}, std::vector<double>{256 * (1 + e), -256}, type);
    const Tensor y = Tensor::fromVector({2}, std::vector<double>{1 + e, 1 + 2 * e}, type);
    const Tensor row(1, 2, x, ints({0, 2}), ints({0, 1}), StorageType::CSR);
    EXPECT_EQ(matmul(row, y).asScalar<double>(), 256 * e * e) << type;
  }
}

TEST(Sparse, ComesDenseToAnotherBackend) {
  Tensor matrix;
  withTensorType<EagerTensor>([&] { matrix = sameMatrix()[0]; });
  EXPECT_TRUE(to<EagerTensor>(Tensor(matrix)).isSparse());
  const Tensor dense = to<LazyTensor>(std::move(matrix));
  EXPECT_EQ(dense.backendType(), LazyTensor::tensorBackendType);
  EXPECT_FALSE(dense.isSparse());
  EXPECT_THAT(dense.toHostVector<float>(), ElementsAre(0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 3, 4));
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
