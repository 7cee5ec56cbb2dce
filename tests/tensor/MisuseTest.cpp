// Misuse of the functions that make and compute tensors. Every one fails at the call, in words.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "fl/base/CallSite.h"
#include "fl/ir/Op.h"
#include "fl/tensor/Compute.h"
#include "fl/tensor/tensor.h"
#include "tests/tensor/Misuse.h"

namespace fl::testing {
namespace {

using Binary = Tensor (*)(const Tensor&, const Tensor&);
using Reduction = Tensor (*)(const Tensor&, const std::vector<int>&, bool);
constexpr Dim kMuch = Dim{1} << 40, kMost = Dim{1} << 62;

bool isOfIntegers(ir::Op op) { return ir::opInfo(op).types == ir::Types::Integer; }

TEST_F(Misuse, OfBinaryFunctions) {
  const Tensor s12 = s34.flatten();
  const auto check = [&](const std::string& name, Binary apply, bool integers) {
    if (!integers) {
      EXPECT_MISUSE(Shapes, apply(f34, f7), name + ": f32[3,4] x f32[7]: shapes do not broadcast");
    } else {
      EXPECT_MISUSE(Shapes, apply(s34, s12),
                    name + ": s32[3,4] x s32[12]: shapes do not broadcast");
      EXPECT_MISUSE(Dtype, apply(f34, s34), name + ": f32[3,4] x s32[3,4]: needs an integer dtype");
      EXPECT_MISUSE(Dtype, apply(s34, f34), name + ": s32[3,4] x f32[3,4]: needs an integer dtype");
    }
  };
#define FL_UNARY(Name, name)
#define FL_BINARY(Name, name) check(#name, &fl::name, isOfIntegers(ir::Op::Name));
#define FL_REDUCE(Name, name)
#include "fl/tensor/Functions.def"
}

// An operator has no name to tell, but its function's.
TEST_F(Misuse, OfBinaryOperators) {
  using WithNumber = Tensor (*)(const Tensor&, const double&);
  using OfNumber = Tensor (*)(const double&, const Tensor&);
  const auto check = [&](const std::string& row, const std::string& name, Binary apply,
                         WithNumber withNumber, OfNumber ofNumber) {
    ir::Op op;
    ASSERT_TRUE(ir::findOp(name, &op));
    if (isOfIntegers(op)) {
      EXPECT_MISUSE_OF(row, Dtype, apply(f34, s34),
                       name + ": f32[3,4] x s32[3,4]: needs an integer dtype");
      EXPECT_MISUSE_OF(row, Dtype, withNumber(s34, 2.5),
                       name + ": s32[3,4] x f32[]: needs an integer dtype");
      EXPECT_MISUSE_OF(row, Dtype, ofNumber(2.5, f34),
                       name + ": f32[] x f32[3,4]: needs an integer dtype");
    }
    const Tensor& x = s34;
    const Tensor y = full({7}, 1, dtype::s32);
    EXPECT_MISUSE_OF(row, Shapes, apply(x, y),
                     name + ": s32[3,4] x s32[7]: shapes do not broadcast");
  };
#define FL_CHECK_OPERATOR(name, op) \
  check("operator" #op, #name, &fl::operator op, &fl::operator op, &fl::operator op);
  FL_FOR_EACH_BINARY_OPERATOR(FL_CHECK_OPERATOR)
#undef FL_CHECK_OPERATOR
  EXPECT_MISUSE(Dtype, f34 & 2, "bitwiseAnd: f32[3,4] x s32[]: needs an integer dtype");
  EXPECT_MISUSE(Dtype, 2.5 << s34, "lShift: f32[] x s32[3,4]: needs an integer dtype");
  EXPECT_MISUSE(Shapes, s34 * f7, "mul: s32[3,4] x f32[7]: shapes do not broadcast");
}

// Tensors are not bound to the backend that made them.
TEST_F(Misuse, IsNotToMixBackends) {
  const auto made = [](const char* backend) {
    const BackendScope scope(backend);
    return full({3}, 2.0) * 3.0;
  };
  const Tensor lazy = made("lazy"), eager = made("eager");
  EXPECT_EQ((lazy + eager).toHostVector<float>(), (std::vector<float>{12, 12, 12}));
  EXPECT_EQ(concatenate({eager, lazy}, 0).elements(), 6u);
}

TEST_F(Misuse, OfSelection) {
  const Tensor condition = f34 > 0.0;
  EXPECT_MISUSE(Dtype, where(f34, f34, f34),
                "where: f32[3,4] x f32[3,4] x f32[3,4]: the condition must be b8");
  EXPECT_MISUSE(DtypesDiffer, where(condition, f34, s34),
                "where: b8[3,4] x f32[3,4] x s32[3,4]: dtypes f32 and s32 differ");
  EXPECT_MISUSE(Shapes, where(condition, f34, f7),
                "where: b8[3,4] x f32[3,4] x f32[7]: shapes do not broadcast");
  EXPECT_MISUSE(Dtype, where(f34, f34, 1.0),
                "where: f32[3,4] x f32[3,4] x f32[]: the condition must be b8");
  EXPECT_MISUSE(Shapes, clip(s34, f7, 1.0),
                "clip: s32[3,4] x f32[7] x f32[]: shapes do not broadcast");
  EXPECT_MISUSE(Shapes, clip(s34, 1.0, f7),
                "clip: s32[3,4] x f32[] x f32[7]: shapes do not broadcast");
  EXPECT_MISUSE(Shapes, clip(f34, f7, f7),
                "clip: f32[3,4] x f32[7] x f32[7]: shapes do not broadcast");
}

TEST_F(Misuse, OfShapes) {
  EXPECT_MISUSE(AxisAbove, f34.dim(9), "dim: f32[3,4] has no dimension 9");
  EXPECT_MISUSE(AxisBelow, f34.dim(-1), "dim: f32[3,4] has no dimension -1");
  EXPECT_MISUSE(AxisBelow, f34.shape().dim(-1), "Shape: dimension -1 of (3, 4), which has 2");
  EXPECT_MISUSE(AxisAbove, f34.shape().dim(2), "Shape: dimension 2 of (3, 4), which has 2");
  EXPECT_MISUSE(AxisAbove, f34.shape()[2], "Shape: dimension 2 of (3, 4), which has 2");
  EXPECT_MISUSE(Shapes, reshape(f34, {5, 2}), "reshape: f32[3,4]: has 12 elements, (5, 2) has 10");
  EXPECT_MISUSE(AxisTwice, transpose(f34, {0, 0}),
                "transpose: f32[3,4]: axes (0, 0) are no permutation of its 2 dimensions");
  EXPECT_MISUSE(Rank, transpose(f34, {0}),
                "transpose: f32[3,4]: axes (0) are no permutation of its 2 dimensions");
  EXPECT_MISUSE(AxisAbove, transpose(f34, {0, 2}),
                "transpose: f32[3,4]: axes (0, 2) are no permutation of its 2 dimensions");
  EXPECT_MISUSE(TooLarge, tile(f34, {Dim{1} << 40, Dim{1} << 40}),
                "tile: (3298534883328, 4398046511104) has too many elements");
  EXPECT_MISUSE(NegativeSize, tile(f34, {2, -1}),
                "tile: f32[3,4]: the times (2, -1) must not be negative");
  EXPECT_MISUSE(Shapes, concatenate({f34, f45}, 0),
                "concatenate: f32[3,4] x f32[4,5]: dimensions other than 0 differ");
  EXPECT_MISUSE(Value, concatenate(std::vector<Tensor>(), 0), "concatenate: there are no tensors");
  EXPECT_MISUSE(DtypesDiffer, concatenate({f34, s34}, 0),
                "concatenate: f32[3,4] x s32[3,4]: dtypes f32 and s32 differ");
  EXPECT_MISUSE(NegativeSize, pad(f34, {{-1, 1}}),
                "pad: f32[3,4]: the widths (-1, 1) of dimension 0 must not be negative");
  EXPECT_MISUSE(DtypesDiffer, concatenate({f34, f7, s34}, 1),
                "concatenate: f32[3,4] x f32[7] x s32[3,4]: dtypes f32 and s32 differ");
  EXPECT_MISUSE(Shapes, pad(f34, {{0, 2}, {1, 5}}, PadType::Symmetric),
                "pad: f32[3,4]: symmetric padding of (1, 5) exceeds dimension 1");
  EXPECT_MISUSE(
      NegativeSize, pad(full({0, 3}, 1.0), {{1, 0}}, PadType::Edge),
      "pad: f32[0,3]: the widths (1, 0) of dimension 0 must not be negative, and 0 where it "
      "has no elements");
  EXPECT_MISUSE(NegativeSize, pad(f34, {{0, 0}, {2, -3}}, PadType::Edge),
                "pad: f32[3,4]: the widths (2, -3) of dimension 1 must not be negative, and 0 "
                "where it has no elements");
  EXPECT_MISUSE(Shapes, pad(f34, {{4, 0}}, PadType::Symmetric),
                "pad: f32[3,4]: symmetric padding of (4, 0) exceeds dimension 0");
  EXPECT_MISUSE(AxisAbove, flip(f34, 2), "flip: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(AxisBelow, transpose(f34, {0, -1}),
                "transpose: f32[3,4]: axes (0, -1) are no permutation of its 2 dimensions");
  EXPECT_MISUSE(AxisAbove, concatenate({f34, f34}, -1),
                "concatenate: f32[3,4] x f32[3,4]: axis 4294967295 is out of range");
  EXPECT_MISUSE(AxisAbove, concatenate({f34, f34}, 1 << 30),
                "concatenate: f32[3,4] x f32[3,4]: axis 1073741824 is out of range");
  EXPECT_MISUSE(Shapes, concatenate(0, f34, f45),
                "concatenate: f32[3,4] x f32[4,5]: dimensions other than 0 differ");
  EXPECT_EQ(concatenate({f34, f34}, 5).shape(), Shape({3, 4, 1, 1, 1, 2}));
  EXPECT_MISUSE(Empty, pad(full({0}, 1.0), {{0, 1}}, PadType::Symmetric),
                "pad: f32[0]: the widths (0, 1) of dimension 0 must not be negative, and 0 where "
                "it has no elements");
}

// What cannot be counted is told as such, before anything of that size is made.
TEST_F(Misuse, OfSizes) {
  const Tensor four = full({4}, 1.0), none = full({kMost, 0}, 1.0);
  EXPECT_MISUSE(TooLarge, reshape(f34, {kMuch, kMuch}),
                "reshape: (1099511627776, 1099511627776) has too many elements");
  EXPECT_MISUSE(TooLarge, tile(f34, {kMost}),
                "tile: (3, 4611686018427387904) has too many elements");
  // 4 (2^62 + 1) is 4, modulo 2^64.
  EXPECT_MISUSE(TooLarge, tile(four, {kMost + 1}),
                "tile: (4, 4611686018427387905) has too many elements");
  EXPECT_MISUSE(TooLarge, concatenate({none, none}, 0),
                "concatenate: f32[4611686018427387904,0] x f32[4611686018427387904,0]: dimension 0 "
                "has no size that can be counted");
  EXPECT_MISUSE(TooLarge, pad(full({std::numeric_limits<Dim>::max(), 0}, 1.0), {{1, 0}}),
                "pad: f32[9223372036854775807,0]: dimension 0 has no size that can be counted");
  EXPECT_MISUSE(TooLarge, matmul(full({kMuch, 0}, 1.0), full({0, kMuch}, 1.0)),
                "matmul: f32[1099511627776,0] x f32[0,1099511627776]: the result "
                "f32[1099511627776,1099511627776] has more bytes than can be counted");
  EXPECT_MISUSE(TooLarge, sum(full({kMuch, kMuch, 0}, 1.0), {2}),
                "sum: f32[1099511627776,1099511627776,0]: the result "
                "f32[1099511627776,1099511627776] has more bytes than can be counted");
}

TEST_F(Misuse, OfProducts) {
  EXPECT_MISUSE(Shapes, matmul(f34, f52),
                "matmul: f32[3,4] x f32[5,2]: inner dimensions 4 and 5 differ");
  EXPECT_MISUSE(DtypesDiffer, matmul(f34, s34),
                "matmul: f32[3,4] x s32[3,4]: dtypes f32 and s32 differ");
  EXPECT_MISUSE(Shapes, matmul(f7, f34),
                "matmul: f32[7] x f32[3,4]: inner dimensions 7 and 3 differ");
  EXPECT_MISUSE(Shapes, matmul(f34, f7),
                "matmul: f32[3,4] x f32[7]: inner dimensions 4 and 7 differ");
  const Tensor one = Tensor::fromVector(std::vector<int>{0});
  const Tensor sparse(3, 4, full({1}, 1.0), one, one, StorageType::COO);
  EXPECT_MISUSE(NegativeSize, Tensor(-2, 3, full({1}, 1.0), one, one, StorageType::COO),
                "Tensor: a sparse matrix of (-2, 3): a size is negative");
  EXPECT_MISUSE(Shapes, matmul(sparse, f34),
                "matmul: f32[3,4] x f32[3,4]: a sparse matrix needs a matrix of its dtype with an "
                "equal inner dimension");
  EXPECT_MISUSE(
      Shapes, matmul(sparse, image, MatrixProperty::None, MatrixProperty::Transpose),
      "matmul: f32[3,4] x f32[8,8,4,2]: a sparse matrix needs a matrix of its dtype with an "
      "equal inner dimension");
  EXPECT_MISUSE(Rank, matmul(fromScalar(1.0), f34),
                "matmul: f32[] x f32[3,4]: scalars have no inner dimension");
  EXPECT_MISUSE(Shapes, matmul(full({3, 4, 2}, 1.0), full({4, 5, 3}, 1.0)),
                "matmul: f32[3,4,2] x f32[4,5,3]: batch dimensions differ");
}

TEST_F(Misuse, OfReductions) {
  const auto check = [&](const std::string& name, Reduction reduce) {
    const std::string type = name + ": s32[3,4]: ";
    EXPECT_MISUSE(AxisAbove, reduce(s34, {2}, false), type + "axis 2 is out of range");
    EXPECT_MISUSE(AxisAbove, reduce(s34, {0, 1, 2}, true), type + "axis 2 is out of range");
    EXPECT_MISUSE(AxisBelow, reduce(s34, {-1}, true), type + "axis -1 is out of range");
    EXPECT_MISUSE(AxisTwice, reduce(s34, {1, 1}, false), type + "axis 1 is given twice");
  };
#define FL_UNARY(Name, name)
#define FL_BINARY(Name, name)
#define FL_REDUCE(Name, name) check(#name, &fl::name);
#include "fl/tensor/Functions.def"
  check("mean", &fl::mean);
  check("median", &fl::median);
  check("std", &fl::std);
  check("countNonzero", &fl::countNonzero);
  check("any", &fl::any);
  check("all", &fl::all);
  for (const bool flag : {false, true}) {
    EXPECT_MISUSE(AxisAbove, var(f34, {2}, flag), "var: f32[3,4]: axis 2 is out of range");
    EXPECT_MISUSE(AxisBelow, var(f34, {-2}, flag), "var: f32[3,4]: axis -2 is out of range");
    EXPECT_MISUSE(AxisTwice, var(f34, {0, 0}, flag), "var: f32[3,4]: axis 0 is given twice");
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double p : {0.0, 1.0, 2.0, 3.0, kInfinity, -kInfinity}) {
    EXPECT_MISUSE(AxisAbove, norm(f34, {2}, p), "norm: f32[3,4]: axis 2 is out of range");
    EXPECT_MISUSE(AxisBelow, norm(f34, {-2}, p), "norm: f32[3,4]: axis -2 is out of range");
    EXPECT_MISUSE(AxisTwice, norm(f34, {0, 0}, p), "norm: f32[3,4]: axis 0 is given twice");
  }
}

TEST_F(Misuse, OfIndexedReductions) {
  const Tensor none = full({3, 0}, 1.0);
  Tensor values, indices;
  EXPECT_MISUSE(AxisAbove, argmax(f34, 2), "argmax: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(AxisAbove, argmin(f34, 2), "argmin: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(AxisAbove, argmin(f34, -1), "argmin: f32[3,4]: axis 4294967295 is out of range");
  EXPECT_MISUSE(AxisAbove, max(values, indices, f34, 5), "max: f32[3,4]: axis 5 is out of range");
  EXPECT_MISUSE(AxisAbove, min(values, indices, f34, 2), "min: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(Empty, argmax(Tensor(), 0), "argmax: f32[0]: axis 0 has no elements");
  EXPECT_MISUSE(Empty, argmin(Tensor(), 0), "argmin: f32[0]: axis 0 has no elements");
  EXPECT_MISUSE(Empty, max(values, indices, none, 1), "max: f32[3,0]: axis 1 has no elements");
  EXPECT_MISUSE(Empty, min(values, indices, none, 1), "min: f32[3,0]: axis 1 has no elements");
}

TEST_F(Misuse, OfOrders) {
  EXPECT_MISUSE(AxisAbove, cumsum(f34, 2), "cumsum: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(AxisBelow, argsort(f34, -1), "argsort: f32[3,4]: axis -1 is out of range");
  EXPECT_MISUSE(AxisAbove, sort(f34, 2), "sort: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(AxisBelow, sort(f34, -1), "sort: f32[3,4]: axis -1 is out of range");
  Tensor values, indices;
  EXPECT_MISUSE(AxisAbove, topk(values, indices, f34, 1, 2),
                "topk: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(AxisAbove, sort(values, indices, f34, 2), "sort: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(Value, topk(values, indices, f34, 5, 1),
                "topk: f32[3,4]: k must be from 1 to the 4 of axis 1, not 5");
  EXPECT_MISUSE(AxisAbove, argsort(f34, 2), "argsort: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(AxisBelow, topk(values, indices, f34, 1, -1),
                "topk: f32[3,4]: axis -1 is out of range");
  EXPECT_MISUSE(Value, topk(values, indices, f34, 0, 1),
                "topk: f32[3,4]: k must be from 1 to the 4 of axis 1, not 0");
  EXPECT_MISUSE(Empty, topk(values, indices, Tensor(), 1, 0),
                "topk: f32[0]: k must be from 1 to the 0 of axis 0, not 1");
  EXPECT_MISUSE(Empty, median(full({0}, 1.0)), "median: f32[0]: no elements");
  EXPECT_MISUSE(AxisAbove, roll(f34, 1, 2), "roll: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(Rank, tril(f7), "tril: f32[7]: has no two dimensions");
  EXPECT_MISUSE(Rank, triu(f7), "triu: f32[7]: has no two dimensions");
}

TEST_F(Misuse, OfNoDtypes) {
  const auto none = static_cast<dtype>(77);
  const uint8_t byte = 0;
  EXPECT_MISUSE(NoDtype, f34.astype(none), "astype: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, s34(0).astype(none), "astype: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, fromScalar(1.0, none), "fromScalar: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, full({2}, 1.0, none), "full: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, arange(0.0, 2.0, 1.0, none), "arange: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, arange(Shape({2}), 0, none), "arange: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, identity(2, none), "identity: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, iota({2}, {1}, none), "iota: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, rand({2}, none), "rand: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, randn({2}, none), "randn: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, Tensor({2}, none), "Tensor: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, Tensor::fromVector({1}, std::vector<int>(1), none),
                "fromVector: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, Tensor::fromArray({1}, std::array<int, 1>(), none),
                "fromArray: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, Tensor::fromBuffer({1}, none, &byte, Location::Host),
                "fromBuffer: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, getTypeSize(none), "getTypeSize: 77 is no dtype");
  EXPECT_MISUSE(NoDtype, dtypeToString(none), "dtypeToString: 77 is no dtype");
  EXPECT_MISUSE(Value, stringToDtype("nope"), "stringToDtype: \"nope\" is no dtype");
}

TEST_F(Misuse, OfCreation) {
  EXPECT_MISUSE(NegativeSize, full({-2, -3}, 1.f),
                "full: the shape (-2, -3) has a negative dimension");
  EXPECT_MISUSE(NegativeSize, iota({-2}), "iota: the shape (-2) has a negative dimension");
  EXPECT_MISUSE(NegativeSize, iota({2}, {-2}), "iota: the times (-2) must not be negative");
  EXPECT_MISUSE(NegativeSize, arange(Shape({-2})),
                "arange: the shape (-2) has a negative dimension");
  EXPECT_MISUSE(NegativeSize, randn({-2}), "randn: the shape (-2) has a negative dimension");
  EXPECT_MISUSE(NegativeSize, rand({-2}), "rand: the shape (-2) has a negative dimension");
  EXPECT_MISUSE(NegativeSize, reshape(f34, {-3, -4}),
                "reshape: f32[3,4]: the shape (-3, -4) has a negative dimension");
  EXPECT_MISUSE(NegativeSize, identity(-1), "identity: a dimension of -1");
  EXPECT_MISUSE(Value, arange(0, 5, 0), "arange: the step is 0");
  EXPECT_MISUSE(Value, arange(5, 0, 1), "arange: 5 to 0 by 1 is empty");
  EXPECT_MISUSE(AxisAbove, arange(Shape({2, 3}), 2), "arange: dimension 2 of (2, 3), which has 2");
  EXPECT_MISUSE(AxisBelow, arange(Shape({2, 3}), -1),
                "arange: dimension -1 of (2, 3), which has 2");
  EXPECT_MISUSE(Dtype, randn({2}, dtype::s32), "randn: s32 is no floating dtype");
}

// No enumerator stands for another one.
TEST_F(Misuse, OfModes) {
  constexpr auto kSort = static_cast<SortMode>(9);
  constexpr auto kProperty = static_cast<MatrixProperty>(-1);
  Tensor values, indices;
  EXPECT_MISUSE(Value, sort(f34, 0, kSort), "sort: 9 is no SortMode");
  EXPECT_MISUSE(Value, sort(values, indices, f34, 0, kSort), "sort: 9 is no SortMode");
  EXPECT_MISUSE(Value, sort(fromScalar(1.0), 0, kSort), "sort: 9 is no SortMode");
  EXPECT_MISUSE(Value, argsort(f34, 0, kSort), "argsort: 9 is no SortMode");
  EXPECT_MISUSE(Value, topk(values, indices, f34, 1, 0, kSort), "topk: 9 is no SortMode");
  EXPECT_MISUSE(Value, pad(f34, {{1, 1}}, static_cast<PadType>(3)), "pad: 3 is no PadType");
  EXPECT_MISUSE(Value, matmul(f34, f45, kProperty), "matmul: -1 is no MatrixProperty");
  EXPECT_MISUSE(Value, matmul(f34, f45, MatrixProperty::None, kProperty),
                "matmul: -1 is no MatrixProperty");
  EXPECT_MISUSE(Value, Tensor(2, 2, f7, s34, s34, static_cast<StorageType>(9)),
                "Tensor: 9 is no StorageType");
}

TEST_F(Misuse, OfLargeCreation) {
  const std::string most = "f32[4611686018427387904] has more bytes than can be counted";
  const std::string square = "[1099511627776,1099511627776] has more bytes than can be counted";
  const std::string elements = "(1099511627776, 1099511627776) has too many elements";
  EXPECT_MISUSE(TooLarge, full({kMost}, 1.f), "full: the result " + most);
  EXPECT_MISUSE(TooLarge, full({kMuch, kMuch}, 1.f), "full: the result f32" + square);
  EXPECT_MISUSE(TooLarge, rand({kMost}), "rand: the result " + most);
  EXPECT_MISUSE(TooLarge, rand({kMost}, dtype::s64),
                "rand: s64[4611686018427387904] has more bytes than can be counted");
  EXPECT_MISUSE(TooLarge, randn({kMost}), "randn: the result " + most);
  EXPECT_MISUSE(TooLarge, arange(Shape({kMost})), "arange: the result " + most);
  EXPECT_MISUSE(TooLarge, arange(0.0, 0x1p62), "arange: the result " + most);
  EXPECT_MISUSE(TooLarge, arange(0.0, 1e30), "arange: 0 to 1e+30 by 1 has no number of elements");
  EXPECT_MISUSE(TooLarge, arange(0ULL, ~0ULL),
                "arange: 0 to 18446744073709551615 by 1 has no number of elements");
  EXPECT_MISUSE(TooLarge, identity(Dim{1} << 31),
                "identity: f32[2147483648,2147483648] has more bytes than can be counted");
  EXPECT_MISUSE(TooLarge, iota({kMost}), "iota: the result " + most);
  EXPECT_MISUSE(TooLarge, iota({kMuch, kMuch}), "iota: " + elements);
  EXPECT_MISUSE(TooLarge, iota({2}, {kMost}),
                "iota: (2, 4611686018427387904) has too many elements");
  EXPECT_MISUSE(TooLarge, Tensor({kMost}), "Tensor: " + most);
  EXPECT_MISUSE(TooLarge, Tensor({kMuch, kMuch}), "Tensor: " + elements);
}

// Of more memory than there is, which can be counted.
TEST_F(Misuse, OfMemory) {
  std::string words;
  try {
    Tensor({Dim{1} << 50});
  } catch (const OutOfMemory& error) {
    words = error.what();
  }
  const std::string want = "host memory: 4503599627370496 bytes cannot be had, at ";
  EXPECT_EQ(words.substr(0, want.size()), want) << "and then what is in use";
}

TEST_F(Misuse, OfElementsThatAreGiven) {
  const std::vector<float> one(1);
  const std::array<float, 1> array = {1};
  const auto* bytes = reinterpret_cast<const uint8_t*>(one.data());
  const std::string negative = "Tensor: the shape (-1) has a negative dimension";
  const std::string elements = "(1099511627776, 1099511627776) has too many elements";
  EXPECT_MISUSE_OF("Tensor", NegativeSize, Tensor({-1}), negative);
  EXPECT_MISUSE_OF("fromVector", NegativeSize, Tensor::fromVector({-1}, one), negative);
  EXPECT_MISUSE_OF("fromArray", NegativeSize, Tensor::fromArray({-1}, array), negative);
  EXPECT_MISUSE_OF("fromBuffer", NegativeSize, Tensor::fromBuffer({-1}, one.data(), Location::Host),
                   negative);
  EXPECT_MISUSE(TooLarge, Tensor::fromVector({kMuch, kMuch}, one), "fromVector: " + elements);
  EXPECT_MISUSE(TooLarge, Tensor::fromArray({kMuch, kMuch}, array), "fromArray: " + elements);
  EXPECT_MISUSE(TooLarge, Tensor::fromBuffer({kMuch, kMuch}, one.data(), Location::Host),
                "fromBuffer: " + elements);
  EXPECT_MISUSE(TooLarge, Tensor::fromBuffer({kMost}, dtype::f32, bytes, Location::Host),
                "fromBuffer: f32[4611686018427387904] has more bytes than can be counted");
  EXPECT_MISUSE_OF("fromVector", Shapes, Tensor::fromVector({3}, std::vector<float>(2)),
                   "Tensor: 2 elements for the shape (3), which has 3");
  EXPECT_MISUSE_OF("fromArray", Shapes, Tensor::fromArray({3}, array),
                   "Tensor: 1 elements for the shape (3), which has 3");
  EXPECT_MISUSE_OF("fromBuffer", Null, Tensor::fromBuffer({3}, dtype::f32, nullptr, Location::Host),
                   "Tensor: a null pointer for the shape (3)");
  EXPECT_MISUSE(Null, Tensor(std::unique_ptr<TensorAdapterBase>{}), "Tensor: a null adapter");
}

TEST_F(Misuse, OfSparseMatrices) {
  const Tensor two = full({2}, 1.0), at = Tensor::fromVector(std::vector<int>{0, 1});
  const auto coo = StorageType::COO;
  EXPECT_MISUSE(Value, Tensor(2, 2, two, at, at, StorageType::Dense),
                "Tensor: a sparse matrix is CSR, CSC or COO");
  EXPECT_MISUSE(Shapes, Tensor(2, 2, two, f7, at, coo),
                "Tensor: a sparse matrix of (2, 2) with 2 values needs 2 row and 2 column indices, "
                "not 7 and 2");
  EXPECT_MISUSE(Dtype, Tensor(2, 2, two, two, at, coo),
                "Tensor: a sparse matrix needs integer indices, not f32 and s32");
  EXPECT_MISUSE(
      Value, Tensor(2, 2, two, Tensor::fromVector(std::vector<int>{0, 2, 1}), at, StorageType::CSR),
      "Tensor: the offsets of a sparse matrix with 2 values must rise from 0 to 2");
  EXPECT_MISUSE(TooLarge, Tensor(kMuch, kMuch, two, at, at, coo),
                "Tensor: (1099511627776, 1099511627776) has too many elements");
  EXPECT_MISUSE(TooLarge, Tensor(std::numeric_limits<Dim>::max(), 2, two, at, at, StorageType::CSR),
                "Tensor: (9223372036854775807, 2) has too many elements");
}

TEST_F(Misuse, OfStreamsAndDevices) {
  const std::string none = "DeviceManager: no device 7 of type x64, which has 1";
  EXPECT_MISUSE_OF("sync", Value, sync(7), none);
  EXPECT_MISUSE_OF("setDevice", Value, setDevice(7), none);
  EXPECT_MISUSE_OF("getMemMgrInfo", Value, detail::getMemMgrInfo("", 7, nullptr), none);
  EXPECT_MISUSE(Value, detail::setMemMgrFlushInterval(0),
                "setMemMgrFlushInterval: the interval must not be 0");
  EXPECT_MISUSE(Null, sync(std::unordered_set<const Device*>{nullptr}), "sync: a null device");
  EXPECT_MISUSE(Null, relativeSync(f34.stream(), std::vector<const Tensor*>{nullptr}),
                "relativeSync: a null tensor");
}

}  // namespace
}  // namespace fl::testing
