// Matrix products: against a plain loop, and their gradients.
#include "fl/autograd/Functions.h"
#include "tests/autograd/GradientCheck.h"

namespace fl::test {
namespace {

using Product = Variable (*)(const Variable&, const Variable&);

// op(lhs) (M,K) x op(rhs) (K,N).
std::vector<double> plainProduct(const Tensor& lhs, const Tensor& rhs, bool transposeLhs,
                                 bool transposeRhs) {
  const std::vector<double> a = valuesOf(lhs);
  const std::vector<double> b = valuesOf(rhs);
  const Dim m = lhs.dim(transposeLhs ? 1 : 0);
  const Dim k = lhs.dim(transposeLhs ? 0 : 1);
  const Dim n = rhs.dim(transposeRhs ? 0 : 1);
  std::vector<double> result(m * n);
  for (Dim column = 0; column < n; ++column) {
    for (Dim row = 0; row < m; ++row) {
      for (Dim i = 0; i < k; ++i) {
        result[row + column * m] += a[transposeLhs ? i + row * k : row + i * m] *
                                    b[transposeRhs ? column + i * n : i + column * k];
      }
    }
  }
  return result;
}

void check(Product function, const Shape& lhs, const Shape& rhs) {
  SCOPED_TRACE(lhs.toString() + " x " + rhs.toString());
  expectGradients([&](const std::vector<Variable>& v) { return function(v[0], v[1]); },
                  {randomTensor(lhs), randomTensor(rhs)});
}

TEST(MatrixFunctions, Values) {
  const Tensor a = randomTensor({3, 4});
  const Tensor b = randomTensor({4, 5});
  const Tensor at = randomTensor({4, 3});
  const Tensor bt = randomTensor({5, 4});
  expectNear(valuesOf(matmul(Variable(a, false), Variable(b, false)).tensor()),
             plainProduct(a, b, false, false), 1e-13);
  expectNear(valuesOf(matmulTN(Variable(at, false), Variable(b, false)).tensor()),
             plainProduct(at, b, true, false), 1e-13);
  expectNear(valuesOf(matmulNT(Variable(a, false), Variable(bt, false)).tensor()),
             plainProduct(a, bt, false, true), 1e-13);
}

TEST(MatrixFunctions, Gradients) {
  check(matmul, {3, 4}, {4, 5});
  check(matmulTN, {4, 3}, {4, 5});
  check(matmulNT, {3, 4}, {5, 4});
  check(matmul, {1, 1}, {1, 1});
}

TEST(MatrixFunctions, Vectors) {
  check(matmul, {4}, {4});
  check(matmul, {4}, {4, 3});
  check(matmul, {3, 4}, {4});
  check(matmulTN, {4, 3}, {4});
  check(matmulTN, {4}, {4, 3});
  check(matmulNT, {4}, {3, 4});
  check(matmulNT, {3, 4}, {4});
}

TEST(MatrixFunctions, Batches) {
  check(matmul, {3, 4, 2}, {4, 5, 2});
  check(matmulTN, {4, 3, 2}, {4, 5, 2});
  check(matmulNT, {3, 4, 2, 2}, {5, 4, 2, 2});
  // A batch on one side only.
  check(matmul, {3, 4}, {4, 5, 2});
  check(matmul, {3, 4, 2}, {4, 5});
  check(matmulTN, {4, 3}, {4, 5, 2});
  check(matmulTN, {4, 3, 2}, {4, 5});
  check(matmulNT, {3, 4, 2}, {5, 4});
  check(matmulNT, {3, 4}, {5, 4, 2, 3});
}

TEST(MatrixFunctions, Linear) {
  const Tensor x = randomTensor({4, 3});
  const Tensor w = randomTensor({2, 4});
  std::vector<double> expected = plainProduct(w, x, false, false);
  expectNear(valuesOf(linear(Variable(x, false), Variable(w, false)).tensor()), expected, 1e-13);
  const Tensor b = Tensor::fromVector(std::vector<double>{10, 20});
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] += i % 2 ? 20 : 10;
  }
  expectNear(valuesOf(linear(Variable(x, false), Variable(w, false), Variable(b, false)).tensor()),
             expected, 1e-13);

  const auto f = [](const std::vector<Variable>& v) {
    return v.size() == 2 ? linear(v[0], v[1]) : linear(v[0], v[1], v[2]);
  };
  for (const Shape& shape : {Shape({4, 3}), Shape({4}), Shape({4, 3, 2}), Shape({4, 1, 2, 2})}) {
    SCOPED_TRACE(shape.toString());
    expectGradients(f, {randomTensor(shape), w});
    expectGradients(f, {randomTensor(shape), w, b});
  }
  Shape shape = linear(Variable(randomTensor({4, 3, 2}), false), Variable(w, false)).shape();
  EXPECT_EQ(shape, Shape({2, 3, 2}));
}

TEST(MatrixFunctions, Misuse) {
  const Variable x(randomTensor({4, 3}), false);
  const Variable w(randomTensor({2, 5}), false);
  EXPECT_NE(
      errorOf([&] { linear(x, w); }).find("linear: input f64[4,3] does not fit weight f64[2,5]"),
      std::string::npos);
  const Variable fitting(randomTensor({2, 4}), false);
  EXPECT_NE(errorOf([&] {
              linear(x, fitting, x);
            }).find("linear: bias f64[4,3] does not fit weight f64[2,4]"),
            std::string::npos);
  EXPECT_NE(errorOf([&] {
              matmul(x, x.astype(dtype::f32));
            }).find("matmul: Variables of different types"),
            std::string::npos);
  EXPECT_THROW(matmul(x, x), std::invalid_argument);
}

TEST(MatrixFunctions, LinearOfNothing) {
  const Variable y =
      linear(Variable(full({0, 3, 2}, 1.0), false), Variable(full({5, 0}, 1.0), false));
  EXPECT_EQ(y.shape(), Shape({5, 3, 2}));
  EXPECT_EQ(y.tensor().toHostVector<float>(), std::vector<float>(30, 0));
}

}  // namespace
}  // namespace fl::test
