// The tensor API's semantics, on whatever backend the environment chooses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "fl/base/Flags.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

using test::errorOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> floats(const Tensor& tensor) { return tensor.toHostVector<float>(); }

// 0, 1, 2, ... in column-major order.
Tensor counting(const Shape& shape, dtype type = dtype::f32) { return iota(shape, {1}, type); }

TEST(Creation, FullArangeIotaIdentity) {
  EXPECT_THAT(floats(full({2, 2}, 1.5)), ElementsAre(1.5, 1.5, 1.5, 1.5));
  EXPECT_EQ(full({2}, 3L).type(), dtype::s32);
  EXPECT_EQ(full({2}, true).type(), dtype::u8);
  EXPECT_EQ(fromScalar(2.0).shape(), Shape({}));
  EXPECT_THAT(floats(arange({3, 2}, 1)), ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_THAT(arange(2, 8, 2).toHostVector<int>(), ElementsAre(2, 4, 6));
  EXPECT_THAT(floats(iota({2, 2}, {1, 2})), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  EXPECT_THAT(floats(identity(2)), ElementsAre(1, 0, 0, 1));
}

TEST(Creation, BytesOfB8AreWhatTheyAre) {
  EXPECT_EQ(full({1}, 42, dtype::b8).scalar<char>(), 42);
  EXPECT_EQ(fromScalar(42, dtype::b8).scalar<char>(), 42);
  EXPECT_EQ(full({1}, 2.5, dtype::b8).scalar<char>(), 2);
  EXPECT_EQ(full({1}, 42).astype(dtype::b8).scalar<char>(), 1);
}

TEST(Creation, HostMemoryIsCopied) {
  std::vector<float> values = {1, 2, 3};
  Tensor t = Tensor::fromVector({3}, values);
  values[0] = 9;
  EXPECT_THAT(floats(t), ElementsAre(1, 2, 3));
  EXPECT_THAT(floats(Tensor::fromVector({2}, values)), ElementsAre(9, 2));
  EXPECT_THAT(errorOf([] { Tensor::fromVector({4}, std::vector<float>{1}); }),
              HasSubstr("Tensor: 1 elements for the shape (4), which has 4"));
  EXPECT_EQ(Tensor().shape(), Shape({0}));
  EXPECT_TRUE(Tensor().isEmpty());
}

TEST(Creation, ATensorOfNothingIsOneOfShape0) {
  int context = 0;
  for (const bool made : {false, true}) {
    const auto none = [&] { return made ? Tensor(Shape{0}) : Tensor(); };
    Tensor x = none(), y = none(), z = none(), w = none();
    x = 5.0;
    x += 1;
    EXPECT_EQ(x.shape(), Shape({0}));
    EXPECT_EQ(x.type(), dtype::f32);
    y.setContext(&context);
    EXPECT_EQ(y.getContext(), &context);
    z += none();
    EXPECT_EQ(z.shape(), Shape({0}));
    EXPECT_EQ(z.type(), dtype::f32);
    EXPECT_THAT(errorOf([&] { z += full({0, 2}, 1.0); }), HasSubstr("+=: f32[0] x f32[0,2]: "));
    none() = none();
    EXPECT_THAT(errorOf([&] { none() = full({2}, 1.0); }), HasSubstr("shapes differ"));
    EXPECT_EQ(none()(span).shape(), Shape({0}));
    EXPECT_EQ(w.flat(span).shape(), Shape({0}));
    EXPECT_THAT(errorOf([&] { none()(0); }),
                HasSubstr("0 is out of range for dimension 0 of 0 elements"));
    w(span) = 3.0;
    EXPECT_EQ(w.shape(), Shape({0}));
  }
}

TEST(Elementwise, BroadcastsFromTheFirstDimension) {
  const Tensor x = counting({2, 3}), column = counting({2}), row = counting({1, 3});
  EXPECT_THAT(floats(x + column), ElementsAre(0, 2, 2, 4, 4, 6));
  EXPECT_THAT(floats(x * row), ElementsAre(0, 0, 2, 3, 8, 10));
  EXPECT_EQ((x + counting({2, 1, 4})).shape(), Shape({2, 3, 4}));
  EXPECT_THAT(
      errorOf([&] { x + counting({3}); }),
      HasSubstr("add: f32[2,3] x f32[3]: shapes do not broadcast, at tests/tensor/TensorTest"));
}

TEST(Elementwise, PromotionAndScalars) {
  const Tensor s32 = counting({3}, dtype::s32), f32 = counting({3}), u8 = counting({3}, dtype::u8);
  EXPECT_EQ((s32 + f32).type(), dtype::f32);
  EXPECT_EQ((u8 + s32).type(), dtype::s32);
  EXPECT_EQ((s32 + 1.5).type(), dtype::f32);
  EXPECT_EQ((f32 + 1.5).type(), dtype::f32);
  EXPECT_EQ((counting({3}, dtype::f16) + 1.5).type(), dtype::f16);
  EXPECT_EQ((s32 == 1).type(), dtype::b8);
  EXPECT_EQ(exp(s32).type(), dtype::f32);
  EXPECT_THAT((s32 / 2).toHostVector<int>(), ElementsAre(0, 0, 1));
  EXPECT_THAT((s32 - 2).toHostVector<int>(), ElementsAre(-2, -1, 0));
  EXPECT_THAT((10 % (s32 + 3)).toHostVector<int>(), ElementsAre(1, 2, 0));
  EXPECT_THAT((-(s32 == 1)).toHostVector<char>(), ElementsAre(0, -1, 0));
  EXPECT_THAT((s32 << 2).toHostVector<int>(), ElementsAre(0, 4, 8));
}

TEST(Elementwise, HalfPrecisionRoundsAfterEachOperator) {
  const Tensor x = Tensor::fromVector({3}, std::vector<float>{1, 2049, 0.1f}, dtype::f16);
  EXPECT_THAT(floats((x + 1.0).astype(dtype::f32)),
              ElementsAre(2, 2048 + 1 + 1 - 2, testing::FloatNear(1.1f, 1e-3f)));
  EXPECT_EQ(sum(x).type(), dtype::f32);
  EXPECT_EQ(mean(x).type(), dtype::f16);
  const Tensor b = Tensor::fromVector({2}, std::vector<float>{1, 3.14159f}, dtype::bf16);
  EXPECT_THAT(floats((b * 1.0).astype(dtype::f32)), ElementsAre(1, 3.140625f));
}

TEST(Elementwise, SpecialValues) {
  const float inf = INFINITY, nan = NAN;
  const Tensor x = Tensor::fromVector({4}, std::vector<float>{nan, inf, -inf, -0.0f});
  EXPECT_THAT(isnan(x).toHostVector<char>(), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(isinf(x).toHostVector<char>(), ElementsAre(0, 1, 1, 0));
  const Tensor whole = Tensor::fromVector(std::vector<int>{0, 1 << 30});
  for (const Tensor& isAny : {isnan(whole), isinf(whole)}) {
    EXPECT_EQ(isAny.type(), dtype::b8);
    EXPECT_THAT(isAny.toHostVector<char>(), ElementsAre(0, 0));
  }
  EXPECT_TRUE(std::isnan(floats(maximum(x, 0.0))[0]));
  EXPECT_TRUE(std::isnan(floats(minimum(fromScalar(0.0), x))[0]));
  EXPECT_TRUE(std::signbit(floats(tanh(x))[3]));
  EXPECT_THAT(floats(exp(x)), ElementsAre(testing::IsNan(), inf, 0, 1));
  EXPECT_TRUE(std::isnan(amax(x).scalar<float>()));
}

TEST(Shapes, ReshapeTransposeTileConcatenate) {
  const Tensor x = counting({2, 3});
  EXPECT_THAT(floats(transpose(x)), ElementsAre(0, 2, 4, 1, 3, 5));
  const Tensor line = arange(Shape({3}));
  EXPECT_EQ(transpose(line, {1, 0}).shape(), Shape({3}));
  EXPECT_THAT(floats(transpose(line, {1, 0})), ElementsAre(0, 1, 2));
  EXPECT_THAT(floats(reshape(transpose(x), {6})), ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_THAT(floats(tile(counting({2}), {2, 2})), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(floats(concatenate(0, counting({2}), counting({1}))), ElementsAre(0, 1, 0));
  EXPECT_EQ(concatenate(2, Tensor(), Tensor()).shape(), Shape({0, 1, 1}));
  const Tensor edged = pad(counting({2}), {{0, 0}, {1, 2}}, PadType::Edge);
  EXPECT_EQ(edged.shape(), Shape({2, 4}));
  EXPECT_THAT(floats(edged), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(floats(pad(counting({2}), {{0, 0}, {1, 0}})), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(floats(flip(x, 1)), ElementsAre(4, 5, 2, 3, 0, 1));
  EXPECT_THAT(floats(pad(counting({2}), {{1, 2}})), ElementsAre(0, 0, 1, 0, 0));
  EXPECT_THAT(floats(pad(counting({3}), {{1, 2}}, PadType::Edge)), ElementsAre(0, 0, 1, 2, 2, 2));
  EXPECT_THAT(floats(pad(counting({3}), {{2, 1}}, PadType::Symmetric)),
              ElementsAre(1, 0, 0, 1, 2, 2));
  EXPECT_THAT(errorOf([&] { reshape(x, {5}); }),
              HasSubstr("reshape: f32[2,3]: has 6 elements, (5) has 5"));
}

TEST(Indexing, LiteralsRangesSpanAndEnd) {
  const Tensor x = counting({4, 3});
  EXPECT_THAT(floats(x(span, 1)), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(x(span, 1).shape(), Shape({4}));
  EXPECT_EQ(x(span, range(1, 2)).shape(), Shape({4, 1}));
  EXPECT_THAT(floats(x(range(1, end), -1)), ElementsAre(9, 10, 11));
  EXPECT_THAT(floats(x(range(0, -1, 2), 0)), ElementsAre(0, 2));
  EXPECT_EQ(x(3, 2).shape(), Shape({1}));
  EXPECT_EQ(x(3, 2).scalar<float>(), 11);
  EXPECT_THAT(floats(x.flat(range(2, 5))), ElementsAre(2, 3, 4));
  EXPECT_THAT(floats(x(1)), ElementsAre(1, 5, 9));
  EXPECT_THAT(errorOf([&] { x(4); }),
              HasSubstr("for dimension 0 of 4 elements, at tests/tensor/TensorTest"));
  EXPECT_THAT(errorOf([&] { x(range(2, 2)); }), HasSubstr("range [2, 2) with stride 1 is empty"));
  const Tensor none = full({0, 3}, 1.0);
  for (const range& all : {range(), range(0, end), range(0, end, 2), range(0, 0)})
    EXPECT_EQ(none(all, range(1, end)).shape(), Shape({0, 2}));
  EXPECT_THAT(errorOf([&] { none(range(0, 1)); }), HasSubstr("is empty or out of range"));
  EXPECT_THAT(errorOf([&] { x(0, 0, 1); }), HasSubstr("for dimension 2 of 1 elements"));
}

TEST(Values, CopiesAreIndependent) {
  Tensor a = counting({3});
  Tensor b = a;
  a += 1;
  EXPECT_THAT(floats(b), ElementsAre(0, 1, 2));
  EXPECT_THAT(floats(a), ElementsAre(1, 2, 3));
  b = a;
  b(0) = 7.0;
  EXPECT_THAT(floats(a), ElementsAre(1, 2, 3));
  EXPECT_THAT(floats(b), ElementsAre(7, 2, 3));
}

TEST(Values, ViewsAliasTheirTensor) {
  Tensor x = counting({2, 3});
  auto row = x(1);
  x += 10;
  EXPECT_THAT(floats(row), ElementsAre(11, 13, 15));
  row += 100;  // writes through, reading before it changes nothing
  EXPECT_THAT(floats(x), ElementsAre(10, 111, 12, 113, 14, 115));
  Tensor detached = row;
  row(0) = 0.0;
  EXPECT_THAT(floats(detached), ElementsAre(111, 113, 115));
  EXPECT_THAT(floats(x), ElementsAre(10, 0, 12, 113, 14, 115));
  const Tensor old = x;
  x = counting({2});  // rebinds x; the view keeps the old elements
  EXPECT_THAT(floats(row), ElementsAre(0, 113, 115));
  EXPECT_THAT(floats(old), ElementsAre(10, 0, 12, 113, 14, 115));
}

// What is bound to a view when it is made is one; what is bound to it later holds its value.
TEST(Values, AssigningAViewCopiesItsValue) {
  Tensor x = counting({2, 3});
  Tensor row;
  row = x(1);
  x += 10;
  EXPECT_THAT(floats(row), ElementsAre(1, 3, 5));
  row += 100;
  EXPECT_THAT(floats(x), ElementsAre(10, 11, 12, 13, 14, 15));
}

TEST(Values, WritesThroughViewsOfViewsAndMovedTensors) {
  Tensor x = counting({4, 3});
  x(range(1, 3), span)(span, 2) = full({2}, -1.0);
  EXPECT_THAT(floats(x(span, 2)), ElementsAre(8, -1, -1, 11));
  auto view = x(0);
  Tensor z = std::move(x);
  z += 1;
  EXPECT_THAT(floats(view), ElementsAre(1, 5, 9));
  z.flat(range(0, 2)) = full({2}, 5.0);
  EXPECT_THAT(floats(z(span, 0)), ElementsAre(5, 5, 3, 4));
}

TEST(Values, AssignmentKeepsShapeAndDtypeOrThrows) {
  Tensor x = counting({2, 2}, dtype::s32);
  x = 6.7;
  EXPECT_EQ(x.type(), dtype::s32);
  EXPECT_THAT(x.toHostVector<int>(), ElementsAre(6, 6, 6, 6));
  x(0) = Tensor::fromVector({2}, std::vector<float>{1.9f, -1.9f});
  EXPECT_THAT(x.toHostVector<int>(), ElementsAre(1, 6, -1, 6));
  Tensor y = counting({5, 6, 2});
  EXPECT_THAT(errorOf([&] { y(span, span, 1) -= counting({5, 6, 1, 8}); }),
              HasSubstr("-=: f32[5,6] x f32[5,6,1,8]: shapes differ"));
  EXPECT_THAT(errorOf([&] { y(0) = counting({7}); }), HasSubstr("assignment: f32[6,2] = f32[7]"));
  EXPECT_EQ(y.scalar<float>(), 0) << "a failed assignment changes nothing";
}

// What is written through an index is cast first, whatever the index.
TEST(Values, UpdatesKeepTheirShapeWhateverOnesAreBehind) {
  const Tensor x = counting({2, 3});
  Tensor number = fromScalar(0.0), total = sum(x);
  number += x(0, 1);
  EXPECT_EQ(number.shape(), Shape());
  EXPECT_EQ(number.scalar<float>(), 2);
  total += x(1, 0);
  total -= x(0, 1);
  total *= x(0, 2);
  total /= x(0, 1);
  EXPECT_EQ(total.shape(), Shape());
  EXPECT_EQ(total.scalar<float>(), 28);
  Tensor line = counting({3}), column = counting({3, 1});
  line += column;
  EXPECT_EQ(line.shape(), Shape({3}));
  EXPECT_THAT(floats(line), ElementsAre(0, 2, 4));
  column *= line;
  EXPECT_EQ(column.shape(), Shape({3, 1}));
  EXPECT_THAT(floats(column), ElementsAre(0, 2, 8));
  line += full({1, 1, 1}, 1.0);
  EXPECT_THAT(floats(line), ElementsAre(1, 3, 5));
  line(span) -= column;
  EXPECT_THAT(floats(line), ElementsAre(1, 1, -3));
  EXPECT_THAT(errorOf([&] { line += full({3, 2, 1}, 1.0); }),
              HasSubstr("+=: f32[3] x f32[3,2,1]: the shape would change"));
  EXPECT_THAT(errorOf([&] { number += full({2}, 1.0); }),
              HasSubstr("+=: f32[] x f32[2]: the shape would change"));
}

TEST(Values, UpdatesThroughIndicesCastToTheTensor) {
  const Tensor at = Tensor::fromVector(std::vector<int>{0, 1});
  for (const Index& index : {Index(at), Index(range(0, 2))}) {
    Tensor x = full({3}, 10, dtype::s32);
    x(index) -= full({2}, 1, dtype::u8);
    x(index) -= 0.5;
    x(index) += Tensor::fromVector(std::vector<float>{1.5, -1.5});
    EXPECT_EQ(x.toHostVector<int>(), (std::vector<int>{10, 8, 10}));
    Tensor y = full({3}, 10, dtype::s64);
    y(index) -= full({2}, 1, dtype::u32);
    EXPECT_EQ(y.toHostVector<long long>(), (std::vector<long long>{9, 9, 10}));
    Tensor z = full({3}, 10.f);
    z(index) -= full({2}, 1, dtype::u16);
    EXPECT_EQ(z.toHostVector<float>(), (std::vector<float>{9, 9, 10}));
  }
}

// -0 is among what is not to become something else.
TEST(Values, UpdatesLeaveAloneWhatTheyDoNotName) {
  const Tensor first = Tensor::fromVector(std::vector<int>{0});
  const auto signsOf = [](const Tensor& x) {
    std::string signs;
    for (float element : x.astype(dtype::f32).toHostVector<float>()) {
      signs += element != 0 ? '1' : std::signbit(element) ? '-' : '+';
    }
    return signs;
  };
  for (const dtype type : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16}) {
    const Tensor line = full({4}, -0.f, type), table = full({2, 3}, -0.f, type);
    Tensor x = line.copy(), y = table.copy(), z = line.copy(), w = table.copy();
    x(range(0, 3))(first) += 1;
    y(first, first) += 1;
    z(range(0, 3))(first) -= full({1}, 1.f, type);
    w(range(0, 1))(span, range(0, 2))(first, first) -= 1.0;
    EXPECT_EQ(signsOf(x), "1---") << type;
    EXPECT_EQ(signsOf(y), "1-----") << type;
    EXPECT_EQ(signsOf(z), "1---") << type;
    EXPECT_EQ(signsOf(w), "1-----") << type;
    Tensor plus = full({2, 3}, 0.f, type);
    plus(first, first) -= 1;
    EXPECT_EQ(signsOf(plus), "1+++++") << type;
  }
}

TEST(Values, ArithmeticOnB8IsOfChars) {
  const auto bytesOf = [](const Tensor& x) { return x.toHostVector<char>(); };
  const auto check = [&](const auto& update, char expected) {
    Tensor whole = full({3}, 5, dtype::b8), part = whole.copy(), named = whole.copy();
    update(std::move(whole));
    update(part(range(0, 2)));
    update(named(Tensor::fromVector(std::vector<int>{0, 1})));
    EXPECT_THAT(bytesOf(whole), ElementsAre(expected, expected, expected));
    EXPECT_THAT(bytesOf(part), ElementsAre(expected, expected, 5));
    EXPECT_THAT(bytesOf(named), ElementsAre(expected, expected, 5));
  };
  check([](Tensor&& x) { x += 2; }, 7);
  check([](Tensor&& x) { x += 2.0; }, 7);
  check([](Tensor&& x) { x -= 7u; }, -2);
  check([](Tensor&& x) { x *= 3.9f; }, 15);
  check([](Tensor&& x) { x /= 2ll; }, 2);
  check([](Tensor&& x) { x += true; }, 6);
  check([](Tensor&& x) { x += 'A'; }, 70);
  check([](Tensor&& x) { x += 256; }, 5);
  check([](Tensor&& x) { x -= -1.0; }, 6);
  check([](Tensor&& x) { x = 42; }, 42);
  check([](Tensor&& x) { x = char{42}; }, 42);
  check([](Tensor&& x) { x = 42.5; }, 42);
  check([](Tensor&& x) { x = 300u; }, 44);
  check([](Tensor&& x) { x = true; }, 1);
  check([](Tensor&& x) { x = 0.5f; }, 0);
}

TEST(Values, ComputedValuesKeepTheirOperandsAsTheyWere) {
  Tensor x = counting({3});
  const Tensor y = x * 2;
  const Tensor flat = x.flatten();
  x += 100;
  EXPECT_THAT(floats(y), ElementsAre(0, 2, 4));
  EXPECT_THAT(floats(flat), ElementsAre(0, 1, 2));
}

TEST(Reductions, SumsAlongAnyAxes) {
  const Tensor x = counting({2, 3, 4});
  EXPECT_EQ(sum(x).scalar<float>(), 23 * 24 / 2);
  EXPECT_EQ(sum(x).shape(), Shape({}));
  EXPECT_THAT(floats(sum(x, {0, 2})), ElementsAre(76, 92, 108));
  EXPECT_EQ(sum(x, {1}, true).shape(), Shape({2, 1, 4}));
  EXPECT_THAT(floats(amax(x, {0, 1})), ElementsAre(5, 11, 17, 23));
  EXPECT_THAT(floats(mean(x, {1})), ElementsAre(2, 3, 8, 9, 14, 15, 20, 21));
  EXPECT_NEAR(var(x).scalar<float>(), (24 * 24 - 1) / 12.0, 1e-4);
  EXPECT_NEAR(norm(counting({3})).scalar<float>(), std::sqrt(5.0), 1e-6);
}

TEST(Reductions, Dtypes) {
  EXPECT_EQ(sum(counting({3}) == 1).type(), dtype::u32);
  EXPECT_EQ(sum(counting({3}) == 1).scalar<unsigned>(), 1u);
  EXPECT_EQ(sum(counting({3}, dtype::u8)).type(), dtype::u32);
  EXPECT_EQ(sum(counting({3}, dtype::s16)).type(), dtype::s32);
  EXPECT_EQ(mean(counting({3}, dtype::s32)).type(), dtype::f32);
  EXPECT_EQ(any(counting({3}) == 2).scalar<char>(), 1);
  EXPECT_EQ(all(counting({3}) == 2).scalar<char>(), 0);
  EXPECT_EQ(countNonzero(counting({3})).scalar<unsigned>(), 2u);
}

TEST(Reductions, ExtremesWithFirstIndices) {
  const Tensor x = Tensor::fromVector({3, 2}, std::vector<float>{1, 5, 5, -2, NAN, 7});
  Tensor values, indices;
  max(values, indices, x, 0);
  EXPECT_THAT(floats(values), ElementsAre(5, testing::IsNan()));
  EXPECT_THAT(indices.toHostVector<unsigned>(), ElementsAre(1, 1));
  min(values, indices, x, 1, true);
  EXPECT_EQ(values.shape(), Shape({3, 1}));
  EXPECT_THAT(indices.toHostVector<unsigned>(), ElementsAre(1, 1, 0));
  EXPECT_EQ(argmax(x, 0).type(), dtype::u32);
}

TEST(Matmul, TransposesVectorsAndBatches) {
  const Tensor a = counting({2, 3}), b = counting({3, 2});
  EXPECT_THAT(floats(matmul(a, b)), ElementsAre(10, 13, 28, 40));
  EXPECT_THAT(floats(matmul(a, a, MatrixProperty::Transpose)),
              ElementsAre(1, 3, 5, 3, 13, 23, 5, 23, 41));
  EXPECT_THAT(floats(matmul(a, counting({3}))), ElementsAre(10, 13));
  EXPECT_EQ(matmul(counting({3}), counting({3})).shape(), Shape({1}));
  EXPECT_EQ(matmul(counting({3}), counting({3})).scalar<float>(), 5);
  const Tensor batch = matmul(a, counting({3, 2, 4}));
  EXPECT_EQ(batch.shape(), Shape({2, 2, 4}));
  EXPECT_THAT(floats(batch(span, span, 0)), ElementsAre(10, 13, 28, 40));
  EXPECT_THAT(matmul(a.astype(dtype::f64), b.astype(dtype::f64)).toHostVector<double>(),
              ElementsAre(10, 13, 28, 40));
  EXPECT_THAT(errorOf([&] { matmul(a, counting({5, 2})); }),
              HasSubstr("matmul: f32[2,3] x f32[5,2]: inner dimensions 3 and 5 differ, at "
                        "tests/tensor/TensorTest.cpp:"));
}

TEST(Host, ReadsCheckTheType) {
  const Tensor x = counting({2});
  EXPECT_THAT(errorOf([&] { x.scalar<int>(); }), HasSubstr("scalar: f32[2] is not read as s32"));
  EXPECT_THAT(errorOf([&] { x.toHostVector<double>(); }), HasSubstr("not read as f64"));
  EXPECT_THAT(errorOf([] { Tensor().scalar<float>(); }), HasSubstr("the tensor is empty"));
  EXPECT_EQ(x.asScalar<int>(), 0);
  float* host = x.host<float>();
  EXPECT_EQ(host[1], 1);
  free(host);
}

TEST(Random, DependsOnSeedAndOrderAlone) {
  setSeed(7);
  const Tensor a = rand({1000}), b = rand({1000});
  setSeed(7);
  const Tensor a2 = rand({1000}), b2 = rand({1000});
  const auto second = floats(b2);  // read out of order
  EXPECT_EQ(floats(a), floats(a2));
  EXPECT_EQ(floats(b), second);
  EXPECT_NE(floats(a), floats(b));
  EXPECT_GT(amin(a).scalar<float>(), 0);
  EXPECT_LE(amax(a).scalar<float>(), 1);
  EXPECT_NEAR(mean(a).scalar<float>(), 0.5, 0.05);
  const Tensor n = randn({10000});
  EXPECT_NEAR(mean(n).scalar<float>(), 0, 0.05);
  EXPECT_NEAR(var(n).scalar<float>(), 1, 0.1);
}

TEST(Matmul, OfIntegers) {
  for (const dtype type : {dtype::s16, dtype::s32, dtype::s64, dtype::u8, dtype::u32}) {
    const Tensor x = counting({2, 3}, type), y = counting({3, 2}, type);
    const Tensor product = matmul(x, y);
    EXPECT_EQ(product.type(), type);
    EXPECT_THAT(floats(product.astype(dtype::f32)), ElementsAre(10, 13, 28, 40));
    const Tensor squares =
        matmul(x, x, MatrixProperty::Transpose, MatrixProperty::None).astype(dtype::f32);
    EXPECT_THAT(floats(squares), ElementsAre(1, 3, 5, 3, 13, 23, 5, 23, 41));
  }
  EXPECT_EQ(
      matmul(full({1, 2}, 200, dtype::u8), full({2, 1}, 1, dtype::u8)).scalar<unsigned char>(),
      144);  // 400 modulo 256
}

TEST(Empty, OperatorsTakeSizeZero) {
  const Tensor x(Shape({0, 3}));
  EXPECT_EQ((x + 1.0).shape(), Shape({0, 3}));
  EXPECT_THAT(floats(sum(x, {0})), ElementsAre(0, 0, 0));
  EXPECT_TRUE(floats(exp(x)).empty());
}

TEST(Utilities, AllCloseAndPrinting) {
  const Tensor x = counting({2, 2});
  EXPECT_TRUE(allClose(x, x + 1e-7));
  EXPECT_FALSE(allClose(x, x + 1e-3));
  EXPECT_FALSE(allClose(x, x.astype(dtype::f64)));
  EXPECT_EQ(x.toString(), "f32[2,2]\n0 2\n1 3\n");
}

TEST(Backends, ScopesMixTensors) {
  const Tensor x = counting({3}) + 1;
  Tensor y;
  {
    BackendScope scope("eager", "cpu");
    y = x * 2;
    BackendScope inner("lazy", "cpu");
    y = y + x;
  }
  EXPECT_THAT(floats(y + x), ElementsAre(4, 8, 12));
  EXPECT_THAT(errorOf([] { BackendScope scope("fast"); }),
              HasSubstr("backend \"fast\" does not exist; there are: eager, lazy"));
  const std::string backend = std::exchange(flags().backend, "quick");
  EXPECT_THAT(errorOf([] { BackendScope scope(""); }),
              HasSubstr("FL_BACKEND: backend \"quick\" does not exist; there are: eager, lazy"));
  flags().backend = backend;
  const std::string device = std::exchange(flags().device, "gpu");
  EXPECT_THAT(errorOf([] { BackendScope scope("eager"); }),
              HasSubstr("FL_DEVICE: device \"gpu\" does not exist; there are: cpu, "));
  flags().device = device;
  EXPECT_THAT(errorOf([] { BackendScope scope("eager", "tpu"); }),
              HasSubstr("device \"tpu\" does not exist; there are: cpu, "));
}

TEST(Tensor, NumbersAreWrittenToBoxesOfMoreAxesThanAKernelHas) {
  Tensor x = full({3, 3, 3, 3, 3, 3}, 1.0F);
  const range part(0, 2);
  x(part, part, part, part, part, part) = 5;
  EXPECT_EQ(sum(x).scalar<float>(), 729 + 4 * 64);
  EXPECT_EQ(sum(x(part, part, part, part, part, part)).scalar<float>(), 5 * 64);
}

}  // namespace
}  // namespace fl
