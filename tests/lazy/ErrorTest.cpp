// Every misuse fails at the call, in words: the operator, the operands' types, the rule, and the
// caller's own line. Every public function of fl/tensor has a misuse here, or stands in the list of
// those that take whatever they are given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <limits>
#include <set>

#include "fl/autograd/tensor/AutogradExtension.h"
#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/base/CallSite.h"
#include "fl/device/DeviceManager.h"
#include "fl/host/ThreadPool.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"
#include "tests/fuzz/TrackedValue.h"

namespace fl::testing {
namespace {

using ::testing::HasSubstr;

using test::errorOf;

// `call` stands on the line of the macro, and so must be the line in the message.
#define EXPECT_ERROR(Error, call, message) \
  EXPECT_EQ(errorOf<Error>([&] { call; }), \
            std::string(message) + ", at tests/lazy/ErrorTest.cpp:" + std::to_string(__LINE__))

// The message begins with the name of the function.
#define EXPECT_MISUSE(call, message)                    \
  do {                                                  \
    functionsWithMisuse().insert(nameIn(message));      \
    EXPECT_ERROR(std::invalid_argument, call, message); \
  } while (false)

std::string nameIn(const std::string& message) { return message.substr(0, message.find(':')); }

std::set<std::string>& functionsWithMisuse() {
  static auto& names = *new std::set<std::string>();
  return names;
}

// Beside Functions.def: creation, members of Tensor and the settings, by the names that their
// errors begin with.
const char* const kOtherFunctions[] = {"batchnorm",
                                       "rnn",
                                       "full",
                                       "Tensor",
                                       "Shape",
                                       "index",
                                       "scalar",
                                       "host",
                                       "toHostVector",
                                       "astype",
                                       "device",
                                       "assignment",
                                       "+=",
                                       "*=",
                                       "/=",
                                       "-=",
                                       "dim",
                                       "conv2d",
                                       "pool2d",
                                       "stringToDtype",
                                       "backend \"zzz\" does not exist; there are"};

// They take tensors of every type and shape.
const std::set<std::string> kCannotFail = {"nonzero", "sigmoid"};

class Misuse : public ::testing::Test {
 protected:
  // All rows have run, unless somebody chose among them.
  static void TearDownTestSuite() {
    if (GTEST_FLAG_GET(filter) != "*") {
      return;
    }
    const std::set<std::string>& covered = functionsWithMisuse();
    std::set<std::string> functions(std::begin(kOtherFunctions), std::end(kOtherFunctions));
// The unary rows of the table take tensors of every type and shape as well.
#define FL_UNARY(Name, name)
#define FL_FUNCTION(Kind, Result, name, parameters, arguments) functions.insert(#name);
#include "fl/tensor/Functions.def"
    for (const std::string& name : functions) {
      EXPECT_NE(covered.contains(name), kCannotFail.contains(name))
          << name << " has no misuse here, or has one and stands in kCannotFail";
    }
    std::cout << functions.size() << " functions, of which " << kCannotFail.size()
              << " take everything\n";
  }

  const Tensor f34 = full({3, 4}, 1.0), f45 = full({4, 5}, 1.0), f52 = full({5, 2}, 1.0);
  const Tensor f7 = full({7}, 1.0), s34 = full({3, 4}, 1, dtype::s32);
  const Tensor image = full({8, 8, 4, 2}, 1.0), filter = full({3, 3, 4, 6}, 1.0);
};

TEST_F(Misuse, OfBinaryOperators) {
  for (const BinaryRow& row : binaryRows()) {
    const bool integers = row.rule == BinaryRow::Rule::Integer;
    const Tensor x = integers ? s34 : f34;
    const Tensor y = integers ? s34.astype(dtype::s32).flatten() : f7;
    const std::string name = row.name,
                      types = integers ? "s32[3,4] x s32[12]" : "f32[3,4] x f32[7]";
    EXPECT_MISUSE(row.apply(x, y), name + ": " + types + ": shapes do not broadcast");
    if (integers) {
      EXPECT_MISUSE(row.apply(f34, s34), name + ": f32[3,4] x s32[3,4]: needs an integer dtype");
    }
  }
  EXPECT_MISUSE(f34 + f7, "add: f32[3,4] x f32[7]: shapes do not broadcast");
  EXPECT_MISUSE(f34 & 2, "bitwiseAnd: f32[3,4] x s32[]: needs an integer dtype");
  EXPECT_MISUSE(2.5 << s34, "lShift: f32[] x s32[3,4]: needs an integer dtype");
  EXPECT_MISUSE(s34 * f7, "mul: s32[3,4] x f32[7]: shapes do not broadcast");
}

TEST_F(Misuse, OfSelection) {
  const Tensor condition = f34 > 0.0;
  EXPECT_MISUSE(where(f34, f34, f34),
                "where: f32[3,4] x f32[3,4] x f32[3,4]: the condition must be b8");
  EXPECT_MISUSE(where(condition, f34, s34),
                "where: b8[3,4] x f32[3,4] x s32[3,4]: dtypes f32 and s32 differ");
  EXPECT_MISUSE(where(condition, f34, f7),
                "where: b8[3,4] x f32[3,4] x f32[7]: shapes do not broadcast");
  EXPECT_MISUSE(where(f34, f34, 1.0),
                "where: f32[3,4] x f32[3,4] x f32[]: the condition must be b8");
  EXPECT_MISUSE(clip(s34, f7, 1.0), "clip: s32[3,4] x f32[7] x f32[]: shapes do not broadcast");
  EXPECT_MISUSE(clip(s34, 1.0, f7), "clip: s32[3,4] x f32[] x f32[7]: shapes do not broadcast");
  EXPECT_MISUSE(clip(f34, f7, f7), "clip: f32[3,4] x f32[7] x f32[7]: shapes do not broadcast");
}

TEST_F(Misuse, OfShapes) {
  EXPECT_MISUSE(f34.dim(9), "dim: f32[3,4] has no dimension 9");
  EXPECT_MISUSE(f34.dim(-1), "dim: f32[3,4] has no dimension -1");
  EXPECT_MISUSE(f34.shape().dim(-1), "Shape: dimension -1 of (3, 4), which has 2");
  EXPECT_MISUSE(f34.shape().dim(2), "Shape: dimension 2 of (3, 4), which has 2");
  EXPECT_MISUSE(f34.shape()[2], "Shape: dimension 2 of (3, 4), which has 2");
  EXPECT_MISUSE(reshape(f34, {5, 2}), "reshape: f32[3,4]: has 12 elements, (5, 2) has 10");
  EXPECT_MISUSE(transpose(f34, {0, 0}),
                "transpose: f32[3,4]: axes (0, 0) are no permutation of its 2 dimensions");
  EXPECT_MISUSE(transpose(f34, {0}),
                "transpose: f32[3,4]: axes (0) are no permutation of its 2 dimensions");
  EXPECT_MISUSE(transpose(f34, {0, 2}),
                "transpose: f32[3,4]: axes (0, 2) are no permutation of its 2 dimensions");
  EXPECT_MISUSE(tile(f34, {Dim{1} << 40, Dim{1} << 40}),
                "tile: Shape: (3298534883328, 4398046511104) has too many elements");
  EXPECT_MISUSE(tile(f34, {2, -1}), "tile: f32[3,4]: the times (2, -1) must not be negative");
  EXPECT_MISUSE(concatenate({f34, f45}, 0),
                "concatenate: f32[3,4] x f32[4,5]: dimensions other than 0 differ");
  EXPECT_MISUSE(concatenate({f34, s34}, 0),
                "concatenate: f32[3,4] x s32[3,4]: dtypes f32 and s32 differ");
  EXPECT_MISUSE(pad(f34, {{-1, 1}}),
                "pad: f32[3,4]: the widths (-1, 1) of dimension 0 must not be negative");
  EXPECT_MISUSE(concatenate({f34, f7, s34}, 1),
                "concatenate: f32[3,4] x f32[7] x s32[3,4]: dtypes f32 and s32 differ");
  EXPECT_MISUSE(pad(f34, {{0, 2}, {1, 5}}, PadType::Symmetric),
                "pad: f32[3,4]: symmetric padding of (1, 5) exceeds dimension 1");
  EXPECT_MISUSE(
      pad(full({0, 3}, 1.0), {{1, 0}}, PadType::Edge),
      "pad: f32[0,3]: the widths (1, 0) of dimension 0 must not be negative, and 0 where it "
      "has no elements");
  EXPECT_MISUSE(pad(f34, {{0, 0}, {2, -3}}, PadType::Edge),
                "pad: f32[3,4]: the widths (2, -3) of dimension 1 must not be negative, and 0 "
                "where it has no elements");
  EXPECT_MISUSE(pad(f34, {{4, 0}}, PadType::Symmetric),
                "pad: f32[3,4]: symmetric padding of (4, 0) exceeds dimension 0");
  EXPECT_MISUSE(flip(f34, 2), "flip: f32[3,4]: axis 2 is out of range");
}

TEST_F(Misuse, OfProducts) {
  EXPECT_MISUSE(matmul(f34, f52), "matmul: f32[3,4] x f32[5,2]: inner dimensions 4 and 5 differ");
  EXPECT_MISUSE(matmul(f34, s34), "matmul: f32[3,4] x s32[3,4]: dtypes f32 and s32 differ");
  EXPECT_MISUSE(matmul(f7, f34), "matmul: f32[7] x f32[3,4]: inner dimensions 7 and 3 differ");
  EXPECT_MISUSE(matmul(f34, f7), "matmul: f32[3,4] x f32[7]: inner dimensions 4 and 7 differ");
  const Tensor one = Tensor::fromVector(std::vector<int>{0});
  const Tensor sparse(3, 4, full({1}, 1.0), one, one, StorageType::COO);
  EXPECT_MISUSE(Tensor(-2, 3, full({1}, 1.0), one, one, StorageType::COO),
                "Tensor: a sparse matrix of (-2, 3): a size is negative");
  EXPECT_MISUSE(matmul(sparse, f34),
                "matmul: f32[3,4] x f32[3,4]: a sparse matrix needs a matrix of its dtype with an "
                "equal inner dimension");
  EXPECT_MISUSE(
      matmul(sparse, image, MatrixProperty::None, MatrixProperty::Transpose),
      "matmul: f32[3,4] x f32[8,8,4,2]: a sparse matrix needs a matrix of its dtype with an "
      "equal inner dimension");
  EXPECT_MISUSE(matmul(fromScalar(1.0), f34),
                "matmul: f32[] x f32[3,4]: scalars have no inner dimension");
  EXPECT_MISUSE(matmul(full({3, 4, 2}, 1.0), full({4, 5, 3}, 1.0)),
                "matmul: f32[3,4,2] x f32[4,5,3]: batch dimensions differ");
}

TEST_F(Misuse, OfReductions) {
  using Reduce = Tensor (*)(const Tensor&, const std::vector<int>&, bool);
  const std::vector<std::pair<std::string, Reduce>> reductions = {
      {"sum", &fl::sum},   {"amax", &fl::amax},
      {"amin", &fl::amin}, {"mean", &fl::mean},
      {"std", &fl::std},   {"any", &fl::any},
      {"all", &fl::all},   {"countNonzero", &fl::countNonzero}};
  for (const auto& [name, reduce] : reductions) {
    const std::string type = name + ": s32[3,4]: ";
    EXPECT_MISUSE(reduce(s34, {2}, false), type + "axis 2 is out of range");
    EXPECT_MISUSE(reduce(s34, {-1}, true), type + "axis -1 is out of range");
  }
  EXPECT_MISUSE(var(f34, {2}), "var: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(norm(f34, {2}), "norm: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(sum(f34, {0, 0}), "sum: f32[3,4]: axis 0 is given twice");
  EXPECT_MISUSE(amax(f34, {2}), "amax: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(argmax(f34, 2), "argmax: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(argmin(f34, 2), "argmin: f32[3,4]: axis 2 is out of range");
  Tensor values, indices;
  EXPECT_MISUSE(max(values, indices, f34, 5), "max: f32[3,4]: axis 5 is out of range");
  EXPECT_MISUSE(min(values, indices, f34, 2), "min: f32[3,4]: axis 2 is out of range");
}

// The last statement of a function is a call, too, and no jump (.bazelrc).
[[gnu::noinline]] void addAtTheEnd(Tensor& x, const Tensor& y) {
  x += y;
}
constexpr int kLineOfAddition = __LINE__ - 2;

TEST_F(Misuse, AtTheEndOfAFunction) {
  Tensor x = f34;
  EXPECT_EQ(errorOf([&] { addAtTheEnd(x, f45); }),
            "+=: f32[3,4] x f32[4,5]: shapes do not broadcast, at tests/lazy/ErrorTest.cpp:" +
                std::to_string(kLineOfAddition));
}

TEST_F(Misuse, OfIndices) {
  EXPECT_MISUSE(f34(3), "index: f32[3,4]: 3 is out of range for dimension 0 of 3 elements");
  EXPECT_MISUSE(s34(0, 4), "index: s32[3,4]: 4 is out of range for dimension 1 of 4 elements");
  EXPECT_MISUSE(s34(span, range(1, 3))(0, 2),
                "index: s32[3,2]: 2 is out of range for dimension 1 of 2 elements");
  EXPECT_MISUSE(
      f34.flat(range(0, 13)),
      "flat: f32[3,4]: range [0, 13) with stride 1 is empty or out of range for its 12 "
      "elements");
  EXPECT_MISUSE(fromScalar(1.0)(1),
                "index: f32[]: 1 is out of range for dimension 0 of 1 elements");
  EXPECT_MISUSE(f34(-4), "index: f32[3,4]: -4 is out of range for dimension 0 of 3 elements");
  EXPECT_MISUSE(f34(0, 0, 1), "index: f32[3,4]: 1 is out of range for dimension 2 of 1 elements");
  EXPECT_MISUSE(
      f34(span, span, range(0, 2)),
      "index: f32[3,4]: range [0, 2) with stride 1 is empty or out of range for dimension "
      "2 of 1 elements");
  EXPECT_MISUSE(
      f34(range(2, 2)),
      "index: f32[3,4]: range [2, 2) with stride 1 is empty or out of range for dimension 0 of 3 "
      "elements");
  EXPECT_MISUSE(
      f34(range(1, 9)),
      "index: f32[3,4]: range [1, 9) with stride 1 is empty or out of range for dimension 0 of 3 "
      "elements");
  EXPECT_MISUSE(f34(range(0, 3, 0)),
                "index: f32[3,4]: range [0, 3) with stride 0: must be positive, flip() reverses, "
                "for dimension 0 of 3 elements");
  EXPECT_MISUSE(f34.flat(12), "flat: f32[3,4]: 12 is out of range for its 12 elements");
  EXPECT_MISUSE(f34(f7 > 0.0),
                "index: f32[3,4]: a mask of 7 elements for dimension 0 of 3 elements");
  EXPECT_MISUSE(full({0, 4}, 1.0)(full({2}, 0)),
                "index: f32[0,4]: 2 indices for dimension 0 of 0 elements");
  EXPECT_MISUSE(f34(range(1, 3), f7 + 3.0).toHostVector<float>(),
                "index: f32[2,4]: 4 is out of range for dimension 1 of 4 elements");
  EXPECT_MISUSE(f34(f7 + 3.0).toHostVector<float>(),
                "index: f32[3,4]: 4 is out of range for dimension 0 of 3 elements");
}

// What data holds is checked when it is read; the line is that of the call.
TEST_F(Misuse, OfIndicesInData) {
  const Tensor index = Tensor::fromVector(std::vector<int>{0, 3});
  Tensor x = f34.copy();
  EXPECT_MISUSE((x(index) = full({2, 4}, 1.0), x.toHostVector<float>()),
                "index: f32[3,4]: 3 is out of range for dimension 0 of 3 elements");
  x = f34.copy();
  EXPECT_MISUSE((x(index) += full({2, 4}, 1.0), x.toHostVector<float>()),
                "+=: f32[3,4]: 3 is out of range for dimension 0 of 3 elements");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor nans = Tensor::fromVector(std::vector<float>{0, nan, 1});
  EXPECT_MISUSE(s34(span, nans).toHostVector<int>(),
                "index: s32[3,4]: NaN is out of range for dimension 1 of 4 elements");
  EXPECT_MISUSE(f34.flat(nans).toHostVector<float>(),
                "flat: f32[3,4]: NaN is out of range for its 12 elements");
  const Tensor twelve = Tensor::fromVector(std::vector<int>{12});
  EXPECT_MISUSE(f34.flat(twelve).toHostVector<float>(),
                "flat: f32[3,4]: 12 is out of range for its 12 elements");
  x = f34.copy();
  EXPECT_MISUSE((x.flat(twelve) = 1.0, x.toHostVector<float>()),
                "index: f32[3,4]: 12 is out of range for its 12 elements");
  x = f34.copy();
  EXPECT_MISUSE((x.flat(twelve) += 1.0, x.toHostVector<float>()),
                "+=: f32[3,4]: 12 is out of range for its 12 elements");
  EXPECT_MISUSE(f34(range(0, 2)).flat(twelve).toHostVector<float>(),
                "flat: f32[2,4]: 12 is out of range for its 8 elements");
  const Tensor line = f34.flatten();
  EXPECT_MISUSE(line(twelve).toHostVector<float>(),
                "index: f32[12]: 12 is out of range for dimension 0 of 12 elements");
  const Tensor largest = Tensor::fromVector(std::vector<unsigned long long>{~0ULL});
  EXPECT_MISUSE(s34(largest).toHostVector<int>(),
                "index: s32[3,4]: 9223372036854775807 or more is out of range for dimension 0 of 3 "
                "elements");
}

// Whoever reads a view, the line is that of the index, and never one of ours.
TEST_F(Misuse, OfIndicesThatOthersRead) {
  const Tensor bad = Tensor::fromVector(std::vector<int>{0, 9});
  std::ostringstream os;
  EXPECT_MISUSE(os << f34(bad), "index: f32[3,4]: 9 is out of range for dimension 0 of 3 elements");
  EXPECT_MISUSE(f34(bad).toString(),
                "index: f32[3,4]: 9 is out of range for dimension 0 of 3 elements");
  Tensor y;
  EXPECT_MISUSE((y = f34(bad), y.toHostVector<float>()),
                "index: f32[3,4]: 9 is out of range for dimension 0 of 3 elements");
}

// Whoever reads a sparse matrix, the line is that of its construction.
TEST_F(Misuse, OfIndicesOfSparseMatrices) {
  const Tensor two = full({2}, 1.0), good = Tensor::fromVector(std::vector<int>{0, 1});
  const Tensor bad = Tensor::fromVector(std::vector<int>{1, 9});
  const std::string row =
      "Tensor: row of a sparse matrix: s64[2]: 9 is out of range for dimension 0 of 2 "
      "elements";
  const std::string column =
      "Tensor: column of a sparse matrix: s64[3]: 9 is out of range for dimension 0 of 3 "
      "elements";
  const Tensor image = full({3, 2}, 1.0), offsets = Tensor::fromVector(std::vector<int>{0, 1, 2});
  EXPECT_MISUSE(Tensor(2, 3, two, bad, good, StorageType::COO).toHostVector<float>(), row);
  EXPECT_MISUSE(Tensor(2, 3, two, good, bad, StorageType::COO).astype(dtype::f64).scalar<double>(),
                column);
  EXPECT_MISUSE(Tensor(2, 3, two, offsets, bad, StorageType::CSR).toHostVector<float>(), column);
  EXPECT_MISUSE(matmul(Tensor(2, 3, two, bad, good, StorageType::COO), image).toHostVector<float>(),
                row);
}

TEST_F(Misuse, OfEmptyAxes) {
  EXPECT_MISUSE(argmax(Tensor(), 0), "argmax: f32[0]: axis 0 has no elements");
  EXPECT_MISUSE(argmin(Tensor(), 0), "argmin: f32[0]: axis 0 has no elements");
}

TEST(Misuses, OfMoreMemoryThanThereIs) {
  const std::string error = errorOf<std::bad_alloc>([] { Tensor({Dim{1} << 50}); });
  const std::string words = "host memory: 4503599627370496 bytes cannot be had, at "
                            "tests/lazy/ErrorTest.cpp:" + std::to_string(__LINE__ - 2) + "\n";
  EXPECT_EQ(error.substr(0, words.size()), words) << "and then what is in use";
}

TEST_F(Misuse, OfOrders) {
  EXPECT_MISUSE(cumsum(f34, 2), "cumsum: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(argsort(f34, -1), "argsort: f32[3,4]: axis -1 is out of range");
  EXPECT_MISUSE(sort(f34, 2), "sort: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(sort(f34, -1), "sort: f32[3,4]: axis -1 is out of range");
  Tensor values, indices;
  EXPECT_MISUSE(topk(values, indices, f34, 1, 2), "topk: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(sort(values, indices, f34, 2), "sort: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(topk(values, indices, f34, 5, 1),
                "topk: f32[3,4]: k must be from 1 to the 4 of axis 1, not 5");
  EXPECT_MISUSE(median(f34, {2}), "median: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(median(f34, {0, 0}), "median: f32[3,4]: axis 0 is given twice");
  EXPECT_MISUSE(median(full({0}, 1.0)), "median: f32[0]: no elements");
  EXPECT_MISUSE(roll(f34, 1, 2), "roll: f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(tril(f7), "tril: f32[7]: has no two dimensions");
  EXPECT_MISUSE(triu(f7), "triu: f32[7]: has no two dimensions");
}

TEST_F(Misuse, OfAssignment) {
  Tensor x = f34.copy();
  EXPECT_MISUSE(x(0) = f7, "assignment: f32[4] = f32[7]: shapes differ");
  EXPECT_MISUSE(x(0) += f7, "+=: f32[4] x f32[7]: shapes differ");
  EXPECT_MISUSE(x -= full({3, 4, 2}, 1.0), "-=: f32[3,4] x f32[3,4,2]: the shape would change");
  EXPECT_MISUSE(x *= full({3, 4, 2}, 1.0), "*=: f32[3,4] x f32[3,4,2]: the shape would change");
  EXPECT_MISUSE(x /= full({3, 4, 2}, 1.0), "/=: f32[3,4] x f32[3,4,2]: the shape would change");
  EXPECT_MISUSE(x += f7, "+=: f32[3,4] x f32[7]: shapes do not broadcast");
  EXPECT_MISUSE(x -= f7, "-=: f32[3,4] x f32[7]: shapes do not broadcast");
  EXPECT_MISUSE(x *= f7, "*=: f32[3,4] x f32[7]: shapes do not broadcast");
  EXPECT_MISUSE(x /= f7, "/=: f32[3,4] x f32[7]: shapes do not broadcast");
  Tensor whole = s34;
  EXPECT_MISUSE(whole += f7, "+=: s32[3,4] x f32[7]: shapes do not broadcast");
  const Tensor rows = Tensor::fromVector(std::vector<int>{0, 2});
  EXPECT_MISUSE(x(0) -= f7, "-=: f32[4] x f32[7]: shapes differ");
  EXPECT_MISUSE(x(0) *= f7, "*=: f32[4] x f32[7]: shapes differ");
  EXPECT_MISUSE(x(0) /= f7, "/=: f32[4] x f32[7]: shapes differ");
  EXPECT_MISUSE(x(rows) += f7, "+=: f32[2,4] x f32[7]: shapes differ");
  EXPECT_MISUSE(x(rows) /= f7, "/=: f32[2,4] x f32[7]: shapes differ");
  EXPECT_MISUSE(x.flat(rows) /= f7, "/=: f32[2] x f32[7]: shapes differ");
  EXPECT_MISUSE(x += full({3, 4, 2}, 1.0), "+=: f32[3,4] x f32[3,4,2]: the shape would change");
  EXPECT_EQ(sum(x).scalar<float>(), 12) << "a failed assignment changes nothing";
}

TEST_F(Misuse, OfHostMemory) {
  EXPECT_MISUSE(f34.scalar<int>(), "scalar: f32[3,4] is not read as s32");
  EXPECT_MISUSE(f34.toHostVector<double>(), "toHostVector: f32[3,4] is not read as f64");
  float element;
  EXPECT_MISUSE(f7(0).host<int>(), "host: f32[1] is not read as s32");
  EXPECT_MISUSE(s34.host(&element), "host: s32[3,4] is not read as f32");
  EXPECT_MISUSE(Tensor().scalar<float>(), "scalar: f32[0]: the tensor is empty");
  EXPECT_MISUSE(Tensor().asScalar<int>(), "asScalar: f32[0]: the tensor is empty");
  EXPECT_MISUSE(f34.device<int>(), "device: f32[3,4] is not read as s32");
  EXPECT_MISUSE(Tensor::fromVector(Shape({3}), std::vector<float>(2)),
                "Tensor: 2 elements for the shape (3), which has 3");
  EXPECT_MISUSE(Tensor::fromBuffer(Shape({3}), dtype::f32, nullptr, Location::Host),
                "Tensor: a null pointer for the shape (3)");
}

TEST_F(Misuse, OfNoDtypes) {
  const auto none = static_cast<dtype>(77);
  EXPECT_MISUSE(f34.astype(none), "astype: 77 is no dtype");
  EXPECT_MISUSE(s34(0).astype(none), "astype: 77 is no dtype");
  EXPECT_MISUSE(full({2}, 1.0, none), "full: 77 is no dtype");
  EXPECT_MISUSE(iota({2}, {1}, none), "iota: 77 is no dtype");
  EXPECT_MISUSE(rand({2}, none), "rand: 77 is no dtype");
  EXPECT_MISUSE(Tensor({2}, none), "Tensor: 77 is no dtype");
}

TEST_F(Misuse, OfCreation) {
  EXPECT_MISUSE(full({-2, -3}, 1.f), "full: the shape (-2, -3) has a negative dimension");
  EXPECT_MISUSE(iota({-2}), "iota: the shape (-2) has a negative dimension");
  EXPECT_MISUSE(iota({2}, {-2}), "iota: the times (-2) must not be negative");
  EXPECT_MISUSE(arange(Shape({-2})), "arange: the shape (-2) has a negative dimension");
  EXPECT_MISUSE(randn({-2}), "randn: the shape (-2) has a negative dimension");
  EXPECT_MISUSE(rand({-2}), "rand: the shape (-2) has a negative dimension");
  EXPECT_MISUSE(Tensor({-3}), "Tensor: the shape (-3) has a negative dimension");
  EXPECT_MISUSE(Tensor::fromVector(Shape({-1, -1}), std::vector<float>(1)),
                "Tensor: the shape (-1, -1) has a negative dimension");
  EXPECT_MISUSE(reshape(f34, {-3, -4}),
                "reshape: f32[3,4]: the shape (-3, -4) has a negative dimension");
  EXPECT_MISUSE(arange(0, 5, 0), "arange: the step is 0");
  EXPECT_MISUSE(arange(5, 0, 1), "arange: 5 to 0 by 1 is empty");
  EXPECT_MISUSE(arange(Shape({2, 3}), 2), "arange: dimension 2 of (2, 3), which has 2");
  EXPECT_MISUSE(identity(-1), "identity: a dimension of -1");
  EXPECT_MISUSE(randn({2}, dtype::s32), "randn: s32 is no floating dtype");
}

TEST_F(Misuse, OfConvolutionsAndPools) {
  EXPECT_MISUSE(
      conv2d(f34, filter),
      "conv2d: f32[3,4] x f32[3,3,4,6]: needs an input (W,H,C,N) and a filter (KW,KH,C/groups,O)");
  EXPECT_MISUSE(conv2d(image, filter, 1, 1, 0, 0, 1, 1, 2),
                "conv2d: f32[8,8,4,2] x f32[3,3,4,6]: the input has 4 channels, the filter takes 4 "
                "in 2 groups and makes 6");
  EXPECT_MISUSE(conv2d(image, filter, 0, 1),
                "conv2d: f32[8,8,4,2] x f32[3,3,4,6]: a stride of 0 is not positive");
  EXPECT_MISUSE(conv2d(image, filter, 1, 1, -1, 0),
                "conv2d: f32[8,8,4,2] x f32[3,3,4,6]: a padding of -1 is negative");
  EXPECT_MISUSE(conv2d(image, filter, 1, 1, 0, 0, 1, 0),
                "conv2d: f32[8,8,4,2] x f32[3,3,4,6]: a dilation of 0 is not positive");
  EXPECT_MISUSE(conv2d(image, filter, 1, 1, 0, 0, 4, 4),
                "conv2d: f32[8,8,4,2] x f32[3,3,4,6]: a filter of 3 with stride 1, padding 0, "
                "dilation 4 does not fit into 8");
  EXPECT_MISUSE(conv2d(image, filter, f7),
                "conv2d: f32[8,8,4,2] x f32[3,3,4,6] x f32[7]: the bias must be (1,1,6,1)");
  EXPECT_MISUSE(conv2d(image, s34), "conv2d: f32[8,8,4,2] x s32[3,4]: dtypes f32 and s32 differ");
  EXPECT_MISUSE(pool2d(reshape(image, {8, 8, 4, 2, 1}), 2, 2),
                "pool2d: f32[8,8,4,2,1]: needs (W,H,C,N)");
  EXPECT_MISUSE(
      pool2d(image, 9, 9),
      "pool2d: f32[8,8,4,2]: a window of 9 with stride 1 and padding 0 does not fit into 8");
  EXPECT_MISUSE(pool2d(image, 2, 2, 0, 1), "pool2d: f32[8,8,4,2]: a stride of 0 is not positive");
  EXPECT_MISUSE(pool2d(image, 2, 2, 1, 1, 2, 2),
                "pool2d: f32[8,8,4,2]: a padding of 2 is more than half of a window of 2");
  EXPECT_MISUSE(pool2d(image.astype(dtype::s32), 2, 2),
                "pool2d: s32[8,8,4,2]: needs a floating dtype");
}

TEST_F(Misuse, OfSettings) {
  EXPECT_MISUSE(BackendScope("zzz"), "backend \"zzz\" does not exist; there are: eager, lazy");
  EXPECT_EQ(errorOf([] { BackendScope("lazy", "tpu"); })
                .rfind("device \"tpu\" does not exist; there are: cpu, ", 0),
            0u);
  EXPECT_MISUSE(host::setNumThreads(0), "the number of threads must be from 1 to 4096, not 0");
  EXPECT_MISUSE(stringToDtype("nope"), "stringToDtype: \"nope\" is no dtype");
  EXPECT_ERROR(std::runtime_error, range(1, end).endVal(),
               "range::endVal: the range ends at fl::end");
  const std::string none = "DeviceManager: no device 7 of type x64, which has 1";
  EXPECT_ERROR(std::runtime_error, setDevice(7), none);
  EXPECT_ERROR(std::runtime_error, sync(7), none);
  EXPECT_ERROR(std::runtime_error, DeviceManager::getInstance().getDevice(DeviceType::x64, 7),
               none);
  EXPECT_ERROR(std::runtime_error, DeviceManager::getInstance().getActiveDevice(DeviceType::CUDA),
               "DeviceManager: no device of type CUDA");
}

TEST_F(Misuse, OfBatchnorm) {
  const Tensor none, four = full({4}, 1.0), zeros = full({4}, 0.0);
  Tensor mean = zeros, variance = four, empty;
  const auto run = [&](const Tensor& x, const Tensor& weight, const std::vector<int>& axes)
                       __attribute__((noinline)) {
                         FL_API_ENTRY();  // errors name the line that calls this
                         return batchnorm(x, weight, none, mean, variance, axes, true, 0.1, 1e-5);
                       };
  EXPECT_MISUSE(run(image.astype(dtype::s32), none, {2}),
                "batchnorm: s32[8,8,4,2]: needs a floating dtype");
  EXPECT_MISUSE(run(image, none, {}), "batchnorm: f32[8,8,4,2]: needs feature axes");
  EXPECT_MISUSE(run(image, none, {4}), "batchnorm: f32[8,8,4,2]: no dimension 4");
  EXPECT_MISUSE(run(image, none, {-1, 0}), "batchnorm: f32[8,8,4,2]: no dimension -1");
  EXPECT_MISUSE(run(image, none, {0, 2}),
                "batchnorm: f32[8,8,4,2]: the feature axes must be neighbours");
  EXPECT_MISUSE(run(image, none, {2, 2}),
                "batchnorm: f32[8,8,4,2]: the feature axes must be neighbours");
  EXPECT_MISUSE(run(image, f7, {2}),
                "batchnorm: f32[8,8,4,2] with weight f32[7]: needs 4 elements of f32");
  EXPECT_MISUSE(run(image, four.astype(dtype::f64), {2}),
                "batchnorm: f32[8,8,4,2] with weight f64[4]: needs 4 elements of f32");
  EXPECT_MISUSE(run(image.astype(dtype::f16), four.astype(dtype::f16), {2}),
                "batchnorm: f16[8,8,4,2] with weight f16[4]: needs 4 elements of f32");
  EXPECT_MISUSE(run(image, none, {3}),
                "batchnorm: f32[8,8,4,2] with running mean f32[4]: needs 2 elements of f32");
  EXPECT_MISUSE(batchnorm(image, none, f7, mean, variance, {2}, true, 0.1, 1e-5),
                "batchnorm: f32[8,8,4,2] with bias f32[7]: needs 4 elements of f32");
  EXPECT_MISUSE(batchnorm(image, none, none, mean, empty, {2}, true, 0.1, 1e-5),
                "batchnorm: running mean and variance must be both empty or neither");
  EXPECT_MISUSE(batchnorm(image, none, none, empty, empty, {2}, false, 0.1, 1e-5),
                "batchnorm: f32[8,8,4,2]: needs running statistics where it does not train");
  EXPECT_MISUSE(
      detail::batchnormBackward(f34, mean, variance, image, none, {2}, true, 1e-5, nullptr),
      "batchnormBackward: a gradient f32[3,4] of a result of shape (8, 8, 4, 2)");
  EXPECT_EQ(mean.toHostVector<float>(), zeros.toHostVector<float>()) << "a failure changed it";
}

TEST_F(Misuse, OfRecurrentNetworks) {
  const Tensor none, x = full({3, 2, 5}, 1.0), state = full({4, 2, 1}, 1.0);
  const Tensor weights = full({4 * 4 * (3 + 4 + 2)}, 1.0);  // of an LSTM
  const auto run = [&](const Tensor& input, const Tensor& hidden, const Tensor& cell,
                       const Tensor& w, RnnMode mode = RnnMode::LSTM, int layers = 1)
                       __attribute__((noinline)) {
                         FL_API_ENTRY();  // errors name the line that calls this
                         return rnn(input, hidden, cell, w, 4, layers, mode, false, 0);
                       };
  run(x, state, state, weights);
  EXPECT_MISUSE(run(s34, none, none, weights), "rnn: s32[3,4]: needs a floating dtype");
  EXPECT_MISUSE(run(image, none, none, weights),
                "rnn: f32[8,8,4,2]: needs an input (features, batch, time) that is not empty");
  EXPECT_MISUSE(run(full({3, 2, 0}, 1.0), none, none, weights),
                "rnn: f32[3,2,0]: needs an input (features, batch, time) that is not empty");
  EXPECT_MISUSE(run(x, none, none, weights, RnnMode::LSTM, 0),
                "rnn: f32[3,2,5]: hidden size 4 and 0 layers must be positive");
  EXPECT_MISUSE(rnn(x, none, none, weights, -4, 1, RnnMode::LSTM, false, 0),
                "rnn: f32[3,2,5]: hidden size -4 and 1 layers must be positive");
  EXPECT_MISUSE(run(x, none, none, f7), "rnn: f32[3,2,5] with weights f32[7]: needs 144 of f32");
  EXPECT_MISUSE(run(x, none, none, weights, RnnMode::GRU),
                "rnn: f32[3,2,5] with weights f32[144]: needs 108 of f32");
  EXPECT_MISUSE(run(x, none, none, weights, RnnMode::LSTM, 2),
                "rnn: f32[3,2,5] with weights f32[144]: needs 304 of f32");
  EXPECT_MISUSE(rnn(x, none, none, weights, 4, 1, RnnMode::LSTM, true, 0),
                "rnn: f32[3,2,5] with weights f32[144]: needs 288 of f32");
  EXPECT_MISUSE(run(x, none, none, weights.astype(dtype::f64)),
                "rnn: f32[3,2,5] with weights f64[144]: needs 144 of f32");
  EXPECT_MISUSE(run(x, f34, none, weights),
                "rnn: f32[3,2,5] with a hidden state f32[3,4]: must be f32[4,2,1] or empty");
  EXPECT_MISUSE(run(x, state, f34, weights),
                "rnn: f32[3,2,5] with a cell state f32[3,4]: must be f32[4,2,1] or empty");
  EXPECT_MISUSE(run(x, state.astype(dtype::f16), none, weights),
                "rnn: f32[3,2,5] with a hidden state f16[4,2,1]: must be f32[4,2,1] or empty");
  EXPECT_MISUSE(run(x, none, state, full({36}, 1.0), RnnMode::TANH),
                "rnn: f32[3,2,5]: only an LSTM has a cell state");
  EXPECT_MISUSE(rnn(x, none, none, weights, 4, 1, RnnMode::LSTM, false, 1.5f),
                "rnn: the probability dropout must be in [0, 1], not 1.5");
}

TEST_F(Misuse, OfGradientsOfRecurrentNetworks) {
  const Tensor none, x = full({3, 2, 5}, 1.0), weights = full({36}, 1.0);
  const auto payload = std::make_shared<detail::AutogradPayload>();
  const Tensor y =
      std::get<0>(detail::rnn(x, none, none, weights, 4, 1, RnnMode::TANH, false, 0, payload));
  const auto run =
      [&](const detail::RNNGradData& grads, const std::shared_ptr<detail::AutogradPayload>& kept)
          __attribute__((noinline)) {
            FL_API_ENTRY();  // errors name the line that calls this
            return detail::rnnBackward(x, none, none, weights,
                                       std::make_shared<detail::RNNGradData>(grads), y, 1, 4,
                                       RnnMode::TANH, false, 0, kept);
          };
  run({y, {}, {}}, payload);
  EXPECT_MISUSE(run({y, {}, {}}, nullptr),
                "rnnBackward: needs the payload of rnn() with the same arguments");
  EXPECT_MISUSE(run({y, {}, {}}, std::make_shared<detail::AutogradPayload>()),
                "rnnBackward: needs the payload of rnn() with the same arguments");
  EXPECT_MISUSE(run({f34, {}, {}}, payload),
                "rnnBackward: the gradient dy f32[3,4] must be f32[4,2,5] or empty");
  EXPECT_MISUSE(run({{}, f34, {}}, payload),
                "rnnBackward: the gradient dhy f32[3,4] must be f32[4,2,1] or empty");
  EXPECT_MISUSE(run({{}, {}, f34}, payload),
                "rnnBackward: the gradient dcy f32[3,4] must be f32[4,2,1] or empty");
}

// What was recorded before a failure is whole, and so is what follows.
TEST(Failures, LoseNothing) {
  const Tensor x = arange(Shape({4}), 0);
  const Tensor y = exp(x * 0.0) + x;
  EXPECT_THROW(matmul(y, full({3, 2}, 1.0)), std::invalid_argument);
  Tensor z = y * 2.0;
  EXPECT_THROW(z += full({3}, 1.0), std::invalid_argument);
  EXPECT_THROW(z(9) = 1.0, std::invalid_argument);
  const Tensor sums = sum(z) + sum(y);
  EXPECT_THROW(sums.scalar<int>(), std::invalid_argument);
  EXPECT_EQ(y.toHostVector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(z.toHostVector<float>(), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(sums.scalar<float>(), 30);
}

}  // namespace
}  // namespace fl::testing
