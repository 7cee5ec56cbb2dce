// Every misuse fails at the call, in words: the operator, the operands' types, the rule, and the
// caller's own line. Every public function of fl/tensor has a misuse here, or stands in the list of
// those that take whatever they are given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "fl/autograd/tensor/AutogradExtension.h"
#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/base/CallSite.h"
#include "fl/runtime/ThreadPool.h"
#include "fl/tensor/tensor.h"
#include "tests/fuzz/TrackedValue.h"

namespace fl::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

template <typename F>
std::string errorOf(F&& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// `call` stands on the line of the macro, and so must be the line in the message, which begins with
// the name of the function.
#define EXPECT_MISUSE(call, begin, rule)                                                       \
  do {                                                                                         \
    functionsWithMisuse().insert(nameIn(begin));                                               \
    EXPECT_THAT(errorOf([&] { call; }),                                                        \
                AllOf(StartsWith(begin), HasSubstr(rule), Not(HasSubstr("internal")),          \
                      EndsWith(", at tests/lazy/ErrorTest.cpp:" + std::to_string(__LINE__)))); \
  } while (false)

std::string nameIn(const std::string& message) { return message.substr(0, message.find(':')); }

std::set<std::string>& functionsWithMisuse() {
  static auto& names = *new std::set<std::string>();
  return names;
}

// Beside Functions.def: creation, members of Tensor and the settings, by the names that their
// errors begin with.
const char* const kOtherFunctions[] = {
    "batchnorm",  "rnn",    "full",
    "Tensor",     "Shape",  "index",
    "scalar",     "host",   "device",
    "assignment", "+=",     "*=",
    "/=",         "-=",     "dim",
    "conv2d",     "pool2d", "backend \"zzz\" does not exist; there are"};

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
    EXPECT_MISUSE(row.apply(x, y), name + ": " + types, "shapes do not broadcast");
    if (integers) {
      EXPECT_MISUSE(row.apply(f34, f34), name + ": f32[3,4] x f32[3,4]", "needs an integer dtype");
    }
  }
  EXPECT_MISUSE(f34 + f7, "add: f32[3,4] x f32[7]", "shapes do not broadcast");
  EXPECT_MISUSE(f34 & 2, "bitwiseAnd: f32[3,4] x f32[]", "needs an integer dtype");
}

TEST_F(Misuse, OfSelection) {
  const Tensor condition = f34 > 0.0;
  EXPECT_MISUSE(where(f34, f34, f34), "where: f32[3,4] x f32[3,4] x f32[3,4]", "must be b8");
  EXPECT_MISUSE(where(condition, f34, s34), "where: b8[3,4] x f32[3,4] x s32[3,4]", "differ");
  EXPECT_MISUSE(where(condition, f34, f7), "where: b8[3,4] x f32[3,4] x f32[7]", "broadcast");
  EXPECT_MISUSE(clip(f34, f7, f7), "clip: maximum: f32[3,4] x f32[7]", "shapes do not broadcast");
}

TEST_F(Misuse, OfShapes) {
  EXPECT_MISUSE(f34.dim(9), "dim: f32[3,4]", "has no dimension 9");
  EXPECT_MISUSE(f34.shape().dim(2), "Shape: dimension 2 of (3, 4)", "which has 2");
  EXPECT_MISUSE(f34.shape()[2], "Shape: dimension 2 of (3, 4)", "which has 2");
  EXPECT_MISUSE(reshape(f34, {5, 2}), "reshape: f32[3,4]", "has 12 elements, (5, 2) has 10");
  EXPECT_MISUSE(transpose(f34, {0, 0}), "transpose: f32[3,4]", "no permutation");
  EXPECT_MISUSE(transpose(f34, {0}), "transpose: f32[3,4]", "no permutation");
  EXPECT_MISUSE(transpose(f34, {0, 2}), "transpose: f32[3,4]", "no permutation");
  EXPECT_MISUSE(tile(f34, {2, -1}), "tile: f32[3,4] by (2, -1)", "times must not be negative");
  EXPECT_MISUSE(concatenate({f34, f45}, 0), "concatenate: f32[3,4] x f32[4,5]", "dimensions");
  EXPECT_MISUSE(concatenate({f34, s34}, 0), "concatenate: f32[3,4] x s32[3,4]", "dtypes");
  EXPECT_MISUSE(concatenate(std::vector<Tensor>{}, 0), "concatenate: ", "no tensors");
  EXPECT_MISUSE(pad(f34, {{1, 1}, {1, 1}, {1, 1}}), "pad: 3 widths for (3, 4)", "widths");
  EXPECT_MISUSE(pad(f34, {{-1, 1}}), "pad: f32[3,4]", "must not be negative");
  EXPECT_MISUSE(pad(f34, {{4, 0}}, PadType::Symmetric), "pad: (3, 4)", "exceeds dimension 0");
  EXPECT_MISUSE(flip(f34, 2), "flip: f32[3,4]: axis 2", "is out of range");
}

TEST_F(Misuse, OfProducts) {
  EXPECT_MISUSE(matmul(f34, f52), "matmul: f32[3,4] x f32[5,2]", "inner dimensions 4 and 5 differ");
  EXPECT_MISUSE(matmul(f34, s34), "matmul: f32[3,4] x s32[3,4]", "dtypes f32 and s32 differ");
  EXPECT_MISUSE(matmul(fromScalar(1.0), f34), "matmul: f32[] x f32[3,4]", "scalars");
  EXPECT_MISUSE(matmul(full({3, 4, 2}, 1.0), full({4, 5, 3}, 1.0)),
                "matmul: f32[3,4,2] x f32[4,5,3]", "batch dimensions differ");
}

TEST_F(Misuse, OfReductions) {
  // A mean is a sum, any() a maximum: the message names what was called and what found the error.
  using Reduce = Tensor (*)(const Tensor&, const std::vector<int>&, bool);
  const std::vector<std::pair<std::string, Reduce>> reductions = {
      {"sum: ", &fl::sum},       {"amax: ", &fl::amax},
      {"amin: ", &fl::amin},     {"mean: ", &fl::mean},
      {"std: ", &fl::std},       {"any: amax: ", &fl::any},
      {"all: amin: ", &fl::all}, {"countNonzero: sum: ", &fl::countNonzero}};
  for (const auto& [begin, reduce] : reductions) {
    EXPECT_MISUSE(reduce(f34, {2}, false), begin, "[3,4]: axis 2 is out of range");
    EXPECT_MISUSE(reduce(f34, {-1}, true), begin, "[3,4]: axis -1 is out of range");
  }
  EXPECT_MISUSE(var(f34, {2}), "var: ", "f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(norm(f34, {2}), "norm: ", "f32[3,4]: axis 2 is out of range");
  EXPECT_MISUSE(sum(f34, {0, 0}), "sum: f32[3,4]", "axis 0 is out of range or given twice");
  EXPECT_MISUSE(amax(f34, {2}), "amax: f32[3,4]", "axis 2 is out of range");
  EXPECT_MISUSE(argmax(f34, 2), "argmax: f32[3,4]: axis 2", "is out of range");
  EXPECT_MISUSE(argmin(f34, 2), "argmin: f32[3,4]: axis 2", "is out of range");
  Tensor values, indices;
  EXPECT_MISUSE(max(values, indices, f34, 5), "max: f32[3,4]: axis 5", "is out of range");
  EXPECT_MISUSE(min(values, indices, f34, 2), "min: f32[3,4]: axis 2", "is out of range");
}

TEST_F(Misuse, OfIndices) {
  EXPECT_MISUSE(f34(3), "index: 3", "out of range for a dimension of 3");
  EXPECT_MISUSE(f34.flat(range(0, 13)), "index: range [0, 13)", "dimension of 12");
  EXPECT_MISUSE(fromScalar(1.0)(0), "index: ", "");
  EXPECT_MISUSE(f34(-4), "index: -4", "out of range for a dimension of 3");
  EXPECT_MISUSE(f34(0, 0, 0), "index: 3 indices", "(3, 4)");
  EXPECT_MISUSE(f34(range(2, 2)), "index: range [2, 2)", "is empty or out of range");
  EXPECT_MISUSE(f34(range(1, 9)), "index: range [1, 9)", "dimension of 3");
  EXPECT_MISUSE(f34(range(0, 3, 0)), "index: range [0, 3) with stride 0", "dimension of 3");
  EXPECT_MISUSE(f34.flat(12), "index: 12", "out of range for a dimension of 12");
  EXPECT_MISUSE(f34(f7 > 0.0), "index: a mask of 7 elements", "for a dimension of 3");
  EXPECT_MISUSE(f34(f7 + 3.0).toHostVector<float>(), "gather: f32[3,4] x s64[7,1]: index ",
                "axis 0 has 3 elements");
}

// What data holds is checked when it is read; the line is that of the call.
TEST_F(Misuse, OfIndicesInData) {
  const Tensor index = Tensor::fromVector(std::vector<int>{0, 3});
  Tensor x = f34.copy();
  EXPECT_MISUSE((x(index) = full({2, 4}, 1.0), x.toHostVector<float>()),
                "scatter: f32[3,4] x s64[2,1] x f32[2,4]: index 3 is out of range", "axis 0 has 3");
  x = f34.copy();
  EXPECT_MISUSE((x(index) += full({2, 4}, 1.0), x.toHostVector<float>()),
                "scatterAdd: f32[3,4] x s64[2,1] x f32[2,4]: index 3 is out of range",
                "axis 0 has 3");
}

// Whoever reads a view, the line is that of the index, and never one of ours.
TEST_F(Misuse, OfIndicesThatOthersRead) {
  const Tensor bad = Tensor::fromVector(std::vector<int>{0, 9});
  std::ostringstream os;
  EXPECT_MISUSE(os << f34(bad), "gather: f32[3,4] x s64[2,1]: index 9", "axis 0 has 3");
  EXPECT_MISUSE(f34(bad).toString(), "gather: f32[3,4]", "index 9 is out of range");
  Tensor y;
  EXPECT_MISUSE((y = f34(bad), y.toHostVector<float>()), "gather: f32[3,4]", "index 9");
  const int line = __LINE__ + 1;
  const Tensor view = f34(bad);
  const Tensor copy = view;
  EXPECT_THAT(errorOf([&] { copy.toHostVector<float>(); }),
              EndsWith("ErrorTest.cpp:" + std::to_string(line)));
}

TEST_F(Misuse, OfEmptyAxes) {
  EXPECT_MISUSE(argmax(Tensor(), 0), "argmax: f32[0]: axis 0", "has no elements");
  EXPECT_MISUSE(argmin(Tensor(), 0), "argmin: f32[0]: axis 0", "has no elements");
}

TEST(Misuses, OfMoreMemoryThanThereIs) {
  std::string message;
  try {
    Tensor x({Dim{1} << 50});
  } catch (const std::bad_alloc& error) {
    message = error.what();
  }
  EXPECT_THAT(message, StartsWith("host memory: "));
  EXPECT_THAT(message, HasSubstr("bytes cannot be had, at tests/lazy/ErrorTest.cpp:"));
}

TEST_F(Misuse, OfOrders) {
  EXPECT_MISUSE(cumsum(f34, 2), "cumsum: f32[3,4]: axis 2", "is out of range");
  EXPECT_MISUSE(argsort(f34, -1), "argsort: f32[3,4]: axis -1", "is out of range");
  EXPECT_MISUSE(sort(f34, 2), "sort: f32[3,4]: axis 2", "is out of range");
  EXPECT_MISUSE(sort(f34, -1), "sort: f32[3,4]: axis -1", "is out of range");
  Tensor values, indices;
  EXPECT_MISUSE(topk(values, indices, f34, 1, 2), "topk: f32[3,4]: axis 2", "is out of range");
  EXPECT_MISUSE(sort(values, indices, f34, 2), "sort: f32[3,4]: axis 2", "is out of range");
  EXPECT_MISUSE(topk(values, indices, f34, 5, 1), "topk: 5 of axis 1 of f32[3,4]", "topk");
  EXPECT_MISUSE(median(f34, {2}), "median: f32[3,4]: axis 2", "is out of range");
  EXPECT_MISUSE(median(full({0}, 1.0)), "median: f32[0]", "no elements");
  EXPECT_MISUSE(roll(f34, 1, 2), "roll: f32[3,4]: axis 2", "is out of range");
  EXPECT_MISUSE(tril(f7), "tril: f32[7]", "no two dimensions");
  EXPECT_MISUSE(triu(f7), "triu: f32[7]", "no two dimensions");
}

TEST_F(Misuse, OfAssignment) {
  Tensor x = f34.copy();
  EXPECT_MISUSE(x(0) = f7, "assignment: f32[4] = f32[7]", "shapes differ");
  EXPECT_MISUSE(x(0) += f7, "+=: f32[4] by f32[7]", "shapes differ");
  EXPECT_MISUSE(x -= full({3, 4, 2}, 1.0), "-=: f32[3,4] by f32[3,4,2]", "shape would change");
  EXPECT_MISUSE(x *= full({3, 4, 2}, 1.0), "*=: f32[3,4] by f32[3,4,2]", "shape would change");
  EXPECT_MISUSE(x /= full({3, 4, 2}, 1.0), "/=: f32[3,4] by f32[3,4,2]", "shape would change");
  EXPECT_MISUSE(x += f7, "add: f32[3,4] x f32[7]", "shapes do not broadcast");
  EXPECT_MISUSE(x += full({3, 4, 2}, 1.0), "+=: f32[3,4] by f32[3,4,2]", "the shape would change");
  EXPECT_EQ(sum(x).scalar<float>(), 12) << "a failed assignment changes nothing";
}

TEST_F(Misuse, OfHostMemory) {
  EXPECT_MISUSE(f34.scalar<int>(), "scalar: a tensor of f32", "is not read as s32");
  EXPECT_MISUSE(f34.toHostVector<double>(), "host: a tensor of f32", "is not read as f64");
  EXPECT_MISUSE(Tensor().scalar<float>(), "scalar: ", "empty");
  EXPECT_MISUSE(Tensor().asScalar<float>(), "scalar: ", "empty");
  EXPECT_MISUSE(f34.device<int>(), "device: a tensor of f32", "is not read as s32");
  EXPECT_MISUSE(Tensor::fromVector(Shape({3}), std::vector<float>(2)), "Tensor: 2 elements",
                "shape (3), which has 3");
}

TEST_F(Misuse, OfCreation) {
  EXPECT_MISUSE(full({-2, -3}, 1.f), "full: broadcast: f32[]: the shape (-2, -3)", "negative");
  EXPECT_MISUSE(iota({-2}), "iota: ", "negative dimension");
  EXPECT_MISUSE(iota({2}, {-2}), "iota: tile: f32[2] by (-2)", "times must not be negative");
  EXPECT_MISUSE(arange(Shape({-2})), "arange: ", "negative dimension");
  EXPECT_MISUSE(randn({-2}), "randn: ", "negative dimension");
  EXPECT_MISUSE(rand({-2}), "rand: u64[] x u64[]: the shape (-2)", "negative dimension");
  EXPECT_MISUSE(Tensor({-3}), "Tensor: the shape (-3)", "negative dimension");
  EXPECT_MISUSE(Tensor::fromVector(Shape({-1, -1}), std::vector<float>(1)), "Tensor: the shape",
                "negative dimension");
  EXPECT_MISUSE(reshape(f34, {-3, -4}), "reshape: f32[3,4]: the shape (-3, -4)", "negative");
  EXPECT_MISUSE(arange(0, 5, 0), "arange: ", "the step is 0");
  EXPECT_MISUSE(arange(5, 0, 1), "arange: 5 to 0 by 1", "empty");
  EXPECT_MISUSE(arange(Shape({2, 3}), 2), "arange: dimension 2 of (2, 3)", "dimension");
  EXPECT_MISUSE(identity(-1), "identity: ", "-1");
  EXPECT_MISUSE(randn({2}, dtype::s32), "randn: ", "s32 is no floating dtype");
}

TEST_F(Misuse, OfConvolutionsAndPools) {
  const std::string types = "conv2d: f32[8,8,4,2] x f32[3,3,4,6]";
  EXPECT_MISUSE(conv2d(f34, filter), "conv2d: f32[3,4] x f32[3,3,4,6]", "needs an input (W,H,C,N)");
  EXPECT_MISUSE(conv2d(image, filter, 1, 1, 0, 0, 1, 1, 2), types, "4 channels");
  EXPECT_MISUSE(conv2d(image, filter, 0, 1), types, "stride 0");
  EXPECT_MISUSE(conv2d(image, filter, 1, 1, -1, 0), types, "padding -1");
  EXPECT_MISUSE(conv2d(image, filter, 1, 1, 0, 0, 4, 4), types, "does not fit into 8");
  EXPECT_MISUSE(conv2d(image, filter, f7), types + " x f32[7]", "the bias must be (1,1,6,1)");
  EXPECT_MISUSE(conv2d(image, s34), "conv2d: f32[8,8,4,2] x s32[3,4]", "differ");
  EXPECT_MISUSE(pool2d(f34, 2, 2), "pool2d: f32[3,4]", "needs (W,H,C,N)");
  EXPECT_MISUSE(pool2d(image, 9, 9), "pool2d: f32[8,8,4,2]", "does not fit into 8");
  EXPECT_MISUSE(pool2d(image, 2, 2, 0, 1), "pool2d: f32[8,8,4,2]", "stride 0");
  EXPECT_MISUSE(pool2d(image, 2, 2, 1, 1, 2, 2), "pool2d: f32[8,8,4,2]", "padding 2");
  EXPECT_MISUSE(pool2d(image.astype(dtype::s32), 2, 2), "pool2d: s32[8,8,4,2]", "floating dtype");
}

TEST_F(Misuse, OfSettings) {
  EXPECT_MISUSE(BackendScope("zzz"), "backend \"zzz\" does not exist; there are: ", "eager, lazy");
  EXPECT_MISUSE(runtime::setNumThreads(0), "the number of threads must be from 1 to ", "not 0");
}

TEST_F(Misuse, OfBatchnorm) {
  const Tensor none, four = full({4}, 1.0), zeros = full({4}, 0.0);
  Tensor mean = zeros, variance = four, empty;
  const auto run = [&](const Tensor& x, const Tensor& weight, const std::vector<int>& axes)
                       __attribute__((noinline)) {
                         FL_API_ENTRY();  // errors name the line that calls this
                         return batchnorm(x, weight, none, mean, variance, axes, true, 0.1, 1e-5);
                       };
  const std::string type = "batchnorm: f32[8,8,4,2]";
  EXPECT_MISUSE(run(image.astype(dtype::s32), none, {2}), "batchnorm: s32[8,8,4,2]", "floating");
  EXPECT_MISUSE(run(image, none, {}), type, "needs feature axes");
  EXPECT_MISUSE(run(image, none, {4}), type, "no dimension 4");
  EXPECT_MISUSE(run(image, none, {-1, 0}), type, "no dimension -1");
  EXPECT_MISUSE(run(image, none, {0, 2}), type, "the feature axes must be neighbours");
  EXPECT_MISUSE(run(image, none, {2, 2}), type, "the feature axes must be neighbours");
  EXPECT_MISUSE(run(image, f7, {2}), type + " with weight f32[7]", "needs 4 elements of f32");
  EXPECT_MISUSE(run(image, four.astype(dtype::f64), {2}), type + " with weight f64[4]", "of f32");
  EXPECT_MISUSE(run(image.astype(dtype::f16), four.astype(dtype::f16), {2}),
                "batchnorm: f16[8,8,4,2] with weight f16[4]", "needs 4 elements of f32");
  EXPECT_MISUSE(run(image, none, {3}), type + " with running mean f32[4]", "needs 2 elements");
  EXPECT_MISUSE(batchnorm(image, none, f7, mean, variance, {2}, true, 0.1, 1e-5),
                type + " with bias f32[7]", "needs 4 elements of f32");
  EXPECT_MISUSE(batchnorm(image, none, none, mean, empty, {2}, true, 0.1, 1e-5),
                "batchnorm: ", "must be both empty or neither");
  EXPECT_MISUSE(batchnorm(image, none, none, empty, empty, {2}, false, 0.1, 1e-5),
                "batchnorm: ", "needs running statistics where it does not train");
  EXPECT_MISUSE(
      detail::batchnormBackward(f34, mean, variance, image, none, {2}, true, 1e-5, nullptr),
      "batchnormBackward: a gradient f32[3,4]", "of shape (8, 8, 4, 2)");
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
  const std::string type = "rnn: f32[3,2,5]";
  run(x, state, state, weights);
  EXPECT_MISUSE(run(s34, none, none, weights), "rnn: s32[3,4]", "needs a floating dtype");
  EXPECT_MISUSE(run(image, none, none, weights), "rnn: f32[8,8,4,2]", "(features, batch, time)");
  EXPECT_MISUSE(run(full({3, 2, 0}, 1.0), none, none, weights), "rnn: f32[3,2,0]", "not empty");
  EXPECT_MISUSE(run(x, none, none, weights, RnnMode::LSTM, 0), type, "must be positive");
  EXPECT_MISUSE(rnn(x, none, none, weights, -4, 1, RnnMode::LSTM, false, 0), type,
                "hidden size -4 and 1 layers must be positive");
  EXPECT_MISUSE(run(x, none, none, f7), type + " with weights f32[7]", "needs 144 of f32");
  EXPECT_MISUSE(run(x, none, none, weights, RnnMode::GRU), type, "needs 108 of f32");
  EXPECT_MISUSE(run(x, none, none, weights, RnnMode::LSTM, 2), type, "needs 304 of f32");
  EXPECT_MISUSE(rnn(x, none, none, weights, 4, 1, RnnMode::LSTM, true, 0), type,
                "needs 288 of f32");
  EXPECT_MISUSE(run(x, none, none, weights.astype(dtype::f64)), type, "needs 144 of f32");
  EXPECT_MISUSE(run(x, f34, none, weights), type + " with a hidden state f32[3,4]",
                "must be f32[4,2,1] or empty");
  EXPECT_MISUSE(run(x, state, f34, weights), type + " with a cell state f32[3,4]",
                "must be f32[4,2,1] or empty");
  EXPECT_MISUSE(run(x, state.astype(dtype::f16), none, weights), type + " with a hidden state f16",
                "must be f32[4,2,1] or empty");
  EXPECT_MISUSE(run(x, none, state, full({36}, 1.0), RnnMode::TANH), type,
                "only an LSTM has a cell state");
  EXPECT_MISUSE(rnn(x, none, none, weights, 4, 1, RnnMode::LSTM, false, 1.5f),
                "rnn: ", "must be in [0, 1], not 1.5");
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
  EXPECT_MISUSE(run({y, {}, {}}, nullptr), "rnnBackward: ", "needs the payload of rnn()");
  EXPECT_MISUSE(run({y, {}, {}}, std::make_shared<detail::AutogradPayload>()),
                "rnnBackward: ", "needs the payload of rnn()");
  EXPECT_MISUSE(run({f34, {}, {}}, payload), "rnnBackward: the gradient dy f32[3,4]",
                "must be f32[4,2,5] or empty");
  EXPECT_MISUSE(run({{}, f34, {}}, payload), "rnnBackward: the gradient dhy f32[3,4]",
                "must be f32[4,2,1] or empty");
  EXPECT_MISUSE(run({{}, {}, f34}, payload), "rnnBackward: the gradient dcy f32[3,4]",
                "must be f32[4,2,1] or empty");
}

TEST(MisuseOfBackends, NamesThoseThatExist) {
  EXPECT_THAT(errorOf([] { BackendScope("fast"); }),
              AllOf(HasSubstr("backend \"fast\" does not exist"), HasSubstr("eager, lazy")));
  EXPECT_THAT(errorOf([] { BackendScope("lazy", "tpu"); }),
              AllOf(HasSubstr("device \"tpu\" does not exist"), HasSubstr("cpu, null, ref")));
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
