// Functions that rearrange, repeat or choose elements.
#include "fl/autograd/Functions.h"
#include "tests/CountingBackend.h"
#include "tests/autograd/GradientCheck.h"

namespace fl::test {
namespace {

// A gradient check of a function of one input.
void check(const Shape& shape, const std::function<Variable(const Variable&)>& f) {
  expectGradients([&](const std::vector<Variable>& v) { return f(v[0]); }, {randomTensor(shape)});
}

Variable counting(const Shape& shape) {
  std::vector<double> values(shape.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(i);
  }
  return Variable(Tensor::fromVector(shape, values), false);
}

TEST(ShapeFunctions, Transpose) {
  expectNear(valuesOf(transpose(counting({2, 3})).tensor()), {0, 2, 4, 1, 3, 5}, 0);
  EXPECT_EQ(transpose(counting({2, 3, 4}), {2, 0, 1}).shape(), Shape({4, 2, 3}));
  check({2, 3}, [](const Variable& x) { return transpose(x); });
  check({2, 3, 4}, [](const Variable& x) { return transpose(x); });
  check({2, 3, 4}, [](const Variable& x) { return transpose(x, {1, 2, 0}); });
  check({2, 3, 2, 2}, [](const Variable& x) { return reorder(x, {3, 0, 2, 1}); });
  EXPECT_NE(errorOf([] {
              reorder(counting({2, 3}), {0});
            }).find("reorder: (0) is no order of the dimensions of f64[2,3]"),
            std::string::npos);
}

TEST(ShapeFunctions, TileAndSumAs) {
  expectNear(valuesOf(tileAs(counting({2}), Shape({2, 2})).tensor()), {0, 1, 0, 1}, 0);
  expectNear(valuesOf(tile(counting({2}), {2}).tensor()), {0, 1, 0, 1}, 0);
  expectNear(valuesOf(sumAs(counting({2, 3}), Shape({1, 3})).tensor()), {1, 5, 9}, 0);
  expectNear(valuesOf(sumAs(counting({2, 3}), Shape({2})).tensor()), {6, 9}, 0);
  EXPECT_EQ(tileAs(counting({1, 3, 0}), Shape({2, 3, 0})).shape(), Shape({2, 3, 0}));
  EXPECT_THROW(tileAs(counting({0, 2}), Shape({3, 2})), std::invalid_argument);
  check({2, 1, 3}, [](const Variable& x) { return tileAs(x, Shape({2, 4, 6})); });
  check({2}, [](const Variable& x) { return tileAs(x, counting({4, 3})); });
  check({}, [](const Variable& x) { return tileAs(x, Shape({2, 2})); });
  check({3, 2}, [](const Variable& x) { return tile(x, {2, 3}); });
  check({3, 2}, [](const Variable& x) { return tile(x, {1, 1, 4}); });
  check({3, 2, 2}, [](const Variable& x) { return tile(x, {2}); });
  check({2, 3, 4}, [](const Variable& x) { return sumAs(x, Shape({1, 3, 1})); });
  check({2, 3, 4}, [](const Variable& x) { return sumAs(x, counting({2})); });
  check({2, 3}, [](const Variable& x) { return sumAs(x, Shape({2, 3})); });
  check({1, 3, 1}, [](const Variable& x) { return tile(x, {2, 1, 2}); });
  check({1, 3, 1}, [](const Variable& x) { return sumAs(x, Shape({1, 1})); });
  EXPECT_NE(errorOf([] {
              tileAs(counting({2}), Shape({3}));
            }).find("tileAs: shape (2) does not tile to (3): dimension 0"),
            std::string::npos);
  EXPECT_NE(errorOf([] {
              sumAs(counting({4}), Shape({2}));
            }).find("sumAs: f64[4] does not reduce to shape (2)"),
            std::string::npos);
}

TEST(ShapeFunctions, TileInAnotherType) {
  Variable x(full(Shape({2}), 0.5), true);
  Variable y = tile(x, {1, 4000}, dtype::f16);
  EXPECT_EQ(y.type(), dtype::f16);
  EXPECT_EQ(y.shape(), Shape({2, 4000}));
  y.backward();
  // In f16 the sum would stop at 2048.
  EXPECT_EQ(valuesOf(x.grad().tensor()), (std::vector<double>{4000, 4000}));
  EXPECT_EQ(tile(x, {2}, dtype::f32).type(), dtype::f32);
  check({3, 2}, [](const Variable& v) { return tile(v, {2, 3}, dtype::f64); });
}

TEST(ShapeFunctions, OfPlainTensors) {
  const Tensor x = counting({2, 1}).tensor();
  expectNear(valuesOf(fl::detail::tileAs(x, {4, 2})), {0, 1, 0, 1, 0, 1, 0, 1}, 0);
  EXPECT_EQ(fl::detail::sumAs(full({2, 3}, 1.0, dtype::f16), {2}).type(), dtype::f16);
  expectNear(valuesOf(fl::detail::sumAs(full({2, 3}, 1.0), {2})), {3, 3}, 0);
  EXPECT_NE(errorOf([&] {
              fl::detail::tileAs(x, {3});
            }).find("tileAs: shape (2, 1) has more dimensions than (3)"),
            std::string::npos);

  const Tensor reduced = full({3, 5}, 1.0);
  using fl::detail::expandedShapeFromReducedDims;
  EXPECT_EQ(expandedShapeFromReducedDims(reduced, {1}), Shape({3, 1, 5}));
  EXPECT_EQ(expandedShapeFromReducedDims(reduced, {3, 0}), Shape({1, 3, 5, 1}));
  EXPECT_EQ(expandedShapeFromReducedDims(full({}, 1.0), {1, 0}), Shape({1, 1}));
  EXPECT_EQ(expandedShapeFromReducedDims(reduced, {0}, /*keepDims=*/true), Shape({3, 5}));
  const std::vector<std::pair<std::vector<int>, int>> wrong = {{{3}, 3}, {{-1}, -1}, {{0, 0}, 0}};
  for (const auto& [axes, axis] : wrong) {
    const std::string message =
        errorOf([&, axes = axes] { expandedShapeFromReducedDims(reduced, axes); });
    EXPECT_NE(message.find("expandedShapeFromReducedDims: no reduction over dimension " +
                           std::to_string(axis) + " leaves f32[3,5]"),
              std::string::npos)
        << message;
  }
}

TEST(ShapeFunctions, Padding) {
  expectNear(valuesOf(padding(counting({2, 2}), {{1, 0}, {0, 2}}, 7).tensor()),
             {7, 0, 1, 7, 2, 3, 7, 7, 7, 7, 7, 7}, 0);
  expectNear(valuesOf(padding(counting({2, 2}), {{0, 1}}, -0.5).tensor()), {0, 1, -0.5, 2, 3, -0.5},
             0);
  EXPECT_EQ(padding(counting({}), {}, 1).shape(), Shape());
  const Variable integers(full(Shape({1}), 3, dtype::s32), false);
  EXPECT_EQ(padding(integers, {{1, 1}}, 2).type(), dtype::s32);
  expectNear(valuesOf(padding(integers, {{1, 1}}, 2).tensor()), {2, 3, 2}, 0);

  check({3}, [](const Variable& x) { return padding(x, {{2, 1}}, 0); });
  check({3}, [](const Variable& x) { return padding(x, {}, 0) * x; });
  check({1, 3, 2}, [](const Variable& x) { return padding(x, {{0, 0}, {1, 2}}, 5); });
  check({2, 1, 2, 3}, [](const Variable& x) {
    const Variable padded = padding(x, {{1, 1}, {0, 1}, {2, 0}, {0, 3}}, -1);
    return padded * padded;
  });
  const auto words = [](std::vector<std::pair<int, int>> pad) {
    return errorOf([&] { padding(counting({2, 3}), pad, 0); });
  };
  EXPECT_NE(words({{0, 0}, {0, 0}, {1, 1}}).find("padding: 3 pairs for the dimensions of f64[2,3]"),
            std::string::npos);
  EXPECT_NE(words({{0, 0}, {2, -1}})
                .find("padding: 2 and -1 elements at dimension 1 of f64[2,3] must not be negative"),
            std::string::npos);
}

// The gradients of parts of one gradient are values of their own.
TEST(ShapeFunctions, SharedGradientsStay) {
  Variable x(full(Shape({2}), 1.0, dtype::f64), true);
  Variable y = padding(x, {{0, 0}}, 0);
  Variable z = x + padding(y, {{0, 1}}, 0)(range(2));
  const Variable grad(full(Shape({2}), 3.0, dtype::f64), false);
  z.backward(grad);
  Variable early = x.grad();
  x.grad().tensor() *= 10;
  expectNear(valuesOf(y.grad().tensor()), {3, 3}, 0);
  expectNear(valuesOf(grad.tensor()), {3, 3}, 0);
}

TEST(ShapeFunctions, Concatenate) {
  const Variable joined = concatenate({counting({2, 1}), counting({2, 2})}, 1);
  EXPECT_EQ(joined.shape(), Shape({2, 3}));
  expectNear(valuesOf(joined.tensor()), {0, 1, 0, 1, 2, 3}, 0);
  for (int dim : {0, 1, 2}) {
    SCOPED_TRACE(dim);
    Shape second = {2, 3, 2};
    second[dim] = 4;
    expectGradients(
        [&](const std::vector<Variable>& v) { return concatenate({v[0], v[1], v[0]}, dim); },
        {randomTensor({2, 3, 2}), randomTensor(second)});
  }
  // One alone is given back, whatever the dimension: the first state of a search.
  EXPECT_EQ(concatenate({counting({2, 1})}, 5).shape(), Shape({2, 1}));
  EXPECT_EQ(concatenate({Variable()}, 1).shape(), Shape({0}));
  EXPECT_NE(errorOf([] { concatenate(std::vector<Variable>{}, 0); }).find("concatenate: no"),
            std::string::npos);
  EXPECT_NE(errorOf([] {
              concatenate({counting({2}), counting({2}).astype(dtype::f32)}, 0);
            }).find("concatenate: Variables of different types"),
            std::string::npos);
  EXPECT_NE(errorOf([] {
              concatenate({counting({2}), counting({2, 1})}, 0);
            }).find("differ in dimensions"),
            std::string::npos);
}

TEST(ShapeFunctions, OfNothing) {
  Variable x(randomTensor({3, 2}), true), none(randomTensor({3, 0}), true);
  Variable joined = concatenate({none, x, none}, 1);
  joined.backward();
  EXPECT_EQ(valuesOf(joined.tensor()), valuesOf(x.tensor()));
  EXPECT_EQ(valuesOf(x.grad().tensor()), std::vector<double>(6, 1));
  EXPECT_EQ(none.grad().shape(), Shape({3, 0}));
  for (const Shape& kept : {Shape({3, 1}), Shape({1, 0})}) {
    none.zeroGrad();
    sumAs(none, kept).backward();
    EXPECT_EQ(none.grad().shape(), Shape({3, 0}));
  }
  Variable empty(randomTensor({3, 0}), true);
  Variable padded = padding(empty, {{0, 1}, {1, 1}}, 2.0);
  padded.backward();
  EXPECT_EQ(valuesOf(padded.tensor()), std::vector<double>(8, 2));
  EXPECT_EQ(empty.grad().shape(), Shape({3, 0}));
  // A 0 keeps a dimension where that fits, and else is one.
  EXPECT_EQ(moddims(empty, {0, 5, 0}).shape(), Shape({3, 5, 0}));
  EXPECT_EQ(moddims(empty, {0, 4}).shape(), Shape({0, 4}));
  EXPECT_EQ(moddims(empty, {0, 0}).shape(), Shape({3, 0}));
  const Variable table(randomTensor({4, 5}), false);
  const Variable noWords(Tensor(Shape({2, 0}), dtype::s32), false);
  EXPECT_EQ(embedding(noWords, table).shape(), Shape({4, 2, 0}));
  const Variable queries(randomTensor({5, 8, 0}), false);
  EXPECT_EQ(multiheadAttention(queries, queries, queries, Variable(), Variable(), Variable(), 2, 0)
                .shape(),
            Shape({5, 8, 0}));
}

TEST(ShapeFunctions, Split) {
  const std::vector<Variable> pieces = split(counting({2, 5}), 2, 1);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[2].shape(), Shape({2, 1}));
  expectNear(valuesOf(pieces[1].tensor()), {4, 5, 6, 7}, 0);
  check({3, 4}, [](const Variable& x) {
    const std::vector<Variable> p = split(x, std::vector<long>{1, 3}, 1);
    return concatenate({p[1] * 2.0, p[0]}, 1);
  });
  // Pieces that nothing reads, and graphs that are kept.
  check({3, 6}, [](const Variable& x) { return split(x, 2, 1)[1]; });
  Variable x(counting({4}).tensor(), true);
  const std::vector<Variable> parts = split(x, 2, 0);
  Variable first = parts[0] * 2.0, both = parts[0] + 3.0 * parts[1];
  first.backward(/*retainGraph=*/true);
  expectNear(valuesOf(x.grad().tensor()), {2, 2, 0, 0}, 0);
  both.backward(/*retainGraph=*/true);
  expectNear(valuesOf(x.grad().tensor()), {3, 3, 3, 3}, 0);
  Variable last = parts[1] * 1.0;
  last.backward();
  expectNear(valuesOf(x.grad().tensor()), {3, 3, 4, 4}, 0);
  EXPECT_NE(errorOf([] {
              split(counting({5}), std::vector<long>{2, 2}, 0);
            }).find("split: pieces of 4 elements in all do not make dimension 0 of f64[5]"),
            std::string::npos);
  EXPECT_NE(errorOf([] { split(counting({5}), 2, 1); }).find("split: no dimension 1"),
            std::string::npos);
}

TEST(ShapeFunctions, Moddims) {
  EXPECT_EQ(moddims(counting({10, 20, 3}), {-1, 0, 1}).shape(), Shape({30, 20, 1}));
  EXPECT_EQ(moddims(counting({4, 6}), {0, 2, 3}).shape(), Shape({4, 2, 3}));
  EXPECT_EQ(moddims(counting({}), {1, 1}).shape(), Shape({1, 1}));
  EXPECT_EQ(flat(counting({2, 3})).shape(), Shape({6}));
  check({2, 6}, [](const Variable& x) { return moddims(x, {3, -1}); });
  check({2, 3, 2}, [](const Variable& x) { return flat(x); });
  const auto words = [](const Shape& dims) {
    return errorOf([&] { moddims(counting({2, 3}), dims); });
  };
  EXPECT_NE(words({-1, -1}).find("moddims: more than one -1 in (-1, -1)"), std::string::npos);
  EXPECT_NE(words({2, 3, 0}).find("moddims: (2, 3, 0) keeps dimension 2"), std::string::npos);
  EXPECT_NE(words({4, -1}).find("moddims: shape (2, 3) has 6 elements"), std::string::npos);
}

TEST(ShapeFunctions, Index) {
  const Variable x = counting({4, 3});
  expectNear(valuesOf(x(1, 2).tensor()), {9}, 0);
  EXPECT_EQ(x(1, 2).shape(), Shape({1}));
  EXPECT_EQ(x(1).shape(), Shape({3}));
  expectNear(valuesOf(x(span, 1).tensor()), {4, 5, 6, 7}, 0);
  expectNear(valuesOf(x(range(1, 3), range(0, 1)).tensor()), {1, 2}, 0);
  expectNear(valuesOf(x.flat(range(3, 6)).tensor()), {3, 4, 5}, 0);

  check({4, 3}, [](const Variable& v) { return v(1, 2); });
  check({4, 3}, [](const Variable& v) { return v(span, 1); });
  check({4, 3}, [](const Variable& v) { return v(-1); });
  check({5, 3}, [](const Variable& v) { return v(range(0, end, 2), range(1, 3)); });
  check({4, 3}, [](const Variable& v) { return v.flat(range(2, 9, 3)); });
  check({4, 3}, [](const Variable& v) { return v.flat(5); });
  // Elements that are chosen more than once.
  check({4, 3}, [](const Variable& v) { return v(range(0, 3)) * v(range(1, 4)); });
  const Tensor rows = Tensor::fromVector(std::vector<int>{3, 0, 3});
  const Tensor columns = Tensor::fromVector(std::vector<int>{1, 1, 2});
  const Tensor pairs = Tensor::fromVector(Shape({2, 2}), std::vector<int>{3, 0, 0, 1});
  check({4, 3}, [&](const Variable& v) { return v(rows); });
  check({4, 3}, [&](const Variable& v) { return v(span, columns); });
  check({4, 3}, [&](const Variable& v) { return v(range(1, 4, 2), columns); });
  check({4, 3, 2}, [&](const Variable& v) { return v(rows, 1, range(1, 2)); });
  check({4, 3}, [&](const Variable& v) { return v(rows, columns); });
  check({4, 3}, [&](const Variable& v) { return v.flat(rows); });
  check({4}, [&](const Variable& v) { return v(pairs); });
  const Tensor mask = Tensor::fromVector(std::vector<char>{1, 0, 0, 1}).astype(dtype::b8);
  check({4, 3}, [&](const Variable& v) { return v(mask) * v(mask); });
  check({2, 2}, [&](const Variable& v) { return v.flat(mask); });
}

// Where a mask holds is found out in forward; backward only records.
TEST(ShapeFunctions, AMaskIsReadOnce) {
  testing::CountingBackend backend(defaultTensorBackend());
  const BackendScope scope(backend);
  Variable x(full({3}, 2.0), true);
  const Tensor mask = Tensor::fromVector(std::vector<float>{1, 0, 1}) > 0.5;
  Variable y = sum(x(mask) + x.flat(mask), {});
  EXPECT_EQ(backend.reads, 2);
  y.backward();
  EXPECT_EQ(backend.reads, 2);
  EXPECT_EQ(valuesOf(x.grad().tensor()), (std::vector<double>{2, 0, 2}));
}

// The result is a value: an update of the source in place does not show.
TEST(ShapeFunctions, IndexIsNoView) {
  Variable x(counting({4}).tensor(), true);
  const Variable part = x(range(0, 2));
  x.tensor() += 10;
  expectNear(valuesOf(part.tensor()), {0, 1}, 0);
}

}  // namespace
}  // namespace fl::test
