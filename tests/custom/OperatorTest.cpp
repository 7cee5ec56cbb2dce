// Operators of one's own, and that the suite finds each kind of mistake in one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fl/custom/Conformance.h"
#include "fl/custom/Operator.h"
#include "fl/fl.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

using ir::ValueType;
using test::errorOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const ValueType kSingle{dtype::f32, {8, 4}}, kDouble{dtype::f64, {5, 3}}, kWhole{dtype::s32, {7}};

// x^2 - y of one type: at x = 2, y = 1 it is 3, with the gradients 4 and -1.
CustomOperator squareLess() {
  return {.name = "squareLess",
          .type =
              [](const auto& operands) {
                if (operands.size() != 2 || operands[0] != operands[1]) {
                  throw std::invalid_argument("two of one type are wanted");
                }
                return operands[0];
              },
          .reference =
              [](const auto& x) {
                std::vector<double> result = x[0].values;
                for (size_t i = 0; i < result.size(); ++i) {
                  result[i] = result[i] * result[i] - x[1].values[i];
                }
                return result;
              },
          .compute = [](const auto& x) { return x[0] * x[0] - x[1]; }};
}

std::vector<Tensor> gradientsOf(const std::vector<Tensor>& x, const Tensor&, const Tensor& grad) {
  return {grad * x[0] * 2, -grad};
}

const Conformance kCases{.cases = {{{kSingle, kSingle}}, {{kDouble, kDouble}, 1, 3}},
                         .refused = {{kSingle, kDouble}, {kSingle}}};

// Runs both kinds of gradient, of compute and of differences, and one's own.
std::vector<CustomOperator> rightOnes() {
  CustomOperator taped = squareLess(), own = squareLess(), prototype = squareLess();
  own.gradient = gradientsOf;
  prototype.compute = nullptr;
  return {taped, own, prototype};
}

TEST(CustomOperator, GivesValuesAndGradients) {
  for (const char* backend : {"lazy", "eager"}) {
    const BackendScope scope(backend, "cpu");
    for (const CustomOperator& op : rightOnes()) {
      Variable x(full({3}, 2.0, dtype::f64), true), y(full({3}, 1.0, dtype::f64), true);
      Variable result = op(x, y);
      result.backward();
      EXPECT_THAT(result.tensor().toHostVector<double>(), ElementsAre(3, 3, 3));
      for (const double slope : x.grad().tensor().toHostVector<double>()) {
        EXPECT_NEAR(slope, 4, 1e-9);
      }
      for (const double slope : y.grad().tensor().toHostVector<double>()) {
        EXPECT_NEAR(slope, -1, 1e-9);
      }
      EXPECT_THAT(op(x.tensor(), y.tensor()).toHostVector<double>(), ElementsAre(3, 3, 3));
    }
  }
}

TEST(CustomOperator, PassesTheSuite) {
  for (const CustomOperator& op : rightOnes()) {
    EXPECT_THAT(checkOperator(op, kCases), IsEmpty());
  }
  // Integers have no gradient.
  CustomOperator whole = squareLess();
  EXPECT_THAT(checkOperator(whole, {.cases = {{{kWhole, kWhole}, -9, 9}}}), IsEmpty());
}

// On the device null nothing has values, gradients neither.
TEST(CustomOperator, HasTypesWithoutValues) {
  const BackendScope scope("lazy", "null");
  Variable x(full({8, 4}, 2.0), true), y(full({8, 4}, 1.0), true);
  Variable result = squareLess()(x, y);
  EXPECT_EQ(result.shape(), Shape({8, 4}));
  result.backward();
  EXPECT_EQ(x.grad().shape(), Shape({8, 4}));
  EXPECT_EQ(x.grad().tensor().toHostVector<float>(), std::vector<float>(32));
  EXPECT_THAT(errorOf([&] { squareLess()(x, Variable(full({8}, 1.0), false)); }),
              StartsWith("squareLess: two of one type are wanted, at "));
}

TEST(CustomOperator, ErrorsNameItAndTheLine) {
  const CustomOperator op = squareLess();
  const Variable x(rand({3}), false), y(rand({4}), false);
  const int line = __LINE__ + 1;
  const std::string refused = errorOf([&] { op(x, y); });
  EXPECT_THAT(refused, StartsWith("squareLess: two of one type are wanted, at "));
  EXPECT_THAT(refused, HasSubstr("OperatorTest.cpp:" + std::to_string(line)));

  CustomOperator wrong = op;
  wrong.compute = [](const auto& operands) { return sum(operands[0], {0}); };
  EXPECT_THAT(errorOf([&] { wrong(x, x); }),
              StartsWith("squareLess: its rule says f32[3], but it computes f32[], at "));
  wrong.compute = nullptr;
  wrong.reference = [](const auto&) { return std::vector<double>(2); };
  EXPECT_THAT(errorOf([&] { wrong(x, x); }),
              StartsWith("squareLess: its rule says f32[3], but the reference gives 2 elements"));

  CustomOperator few = op, other = op;
  few.gradient = [](const auto&, const auto&, const Tensor& grad) { return std::vector{grad}; };
  other.gradient = [](const auto&, const auto&, const Tensor& grad) {
    return std::vector{grad, sum(grad, {0}, true)};
  };
  const auto backward = [&](const CustomOperator& of) {
    Variable operand(rand({3}), true);
    of(operand, operand).backward();
  };
  EXPECT_THAT(errorOf([&] { backward(few); }), StartsWith("squareLess: 1 gradients of 2 operands"));
  EXPECT_THAT(errorOf([&] { backward(other); }),
              StartsWith("squareLess: the gradient of operand 1 is f32[1], not f32[3]"));
}

// One mistake each, of what the suite looks at.
TEST(Conformance, FindsWrongValues) {
  CustomOperator wrong = squareLess();
  wrong.compute = [](const auto& x) { return x[0] * x[0] + x[1]; };
  EXPECT_THAT(checkOperator(wrong, kCases),
              Contains(StartsWith("squareLess(f32[8,4], f32[8,4]), lazy on cpu: element 0 is ")));
  EXPECT_THAT(checkOperator(wrong, kCases), Contains(HasSubstr(", eager on ref: element 0 is ")));
  // A thousandth is seen, a unit of f32 is not.
  wrong.compute = [](const auto& x) { return (x[0] * x[0] - x[1]) * 1.001; };
  EXPECT_THAT(checkOperator(wrong, kCases), Contains(HasSubstr("the reference says")));
  wrong.compute = [](const auto& x) { return (x[0] * x[0] - x[1]) * (1 + 0x1p-23); };
  EXPECT_THAT(checkOperator(wrong, {.cases = {{{kSingle, kSingle}}}}), IsEmpty());
}

TEST(Conformance, FindsWrongGradients) {
  CustomOperator wrong = squareLess();
  wrong.gradient = [](const auto& x, const auto&, const Tensor& grad) {
    return std::vector<Tensor>{grad * x[0] * 2.00002, -grad};
  };
  for (const char* where : {"lazy on cpu", "eager on cpu"}) {
    EXPECT_THAT(checkOperator(wrong, {.cases = {{{kDouble, kDouble}, 1, 3}}}),
                Contains(StartsWith(std::string("squareLess(f64[5,3], f64[5,3]), ") + where +
                                    ", gradient of operand 0: element ")));
  }
  wrong.gradient = [](const auto& x, const auto&, const Tensor& grad) {
    return std::vector<Tensor>{grad * x[0] * 2, Tensor()};
  };
  EXPECT_THAT(checkOperator(wrong, kCases),
              Contains(HasSubstr("gradient of operand 1: element 0 is 0, differences say -")));
}

TEST(Conformance, FindsWrongTypes) {
  CustomOperator wrong = squareLess();
  wrong.type = [](const auto& operands) {
    return ValueType{operands[0].type, {operands[0].shape[0], 1}};
  };
  EXPECT_THAT(
      checkOperator(wrong, kCases),
      ElementsAre(StartsWith("squareLess(f32[8,4], f32[8,4]), lazy on cpu throws: squareLess: "
                             "its rule says f32[8,1], but it computes f32[8,4]"),
                  StartsWith("squareLess(f64[5,3], f64[5,3]), lazy on cpu throws: "),
                  "squareLess(f32[8,4], f64[5,3]) is not refused",
                  "squareLess(f32[8,4]) is not refused"));
  wrong = squareLess();
  wrong.compute = [](const auto& x) { return (x[0] * x[0] - x[1]).astype(dtype::f32); };
  EXPECT_THAT(checkOperator(wrong, kCases),
              ElementsAre(HasSubstr("its rule says f64[5,3], but it computes f32[5,3]")));
  EXPECT_THAT(checkOperator(wrong, {}), ElementsAre("squareLess: there are no cases"));
}

TEST(Conformance, TellsWhatItLacks) {
  CustomOperator op = squareLess();
  Conformance nowhere = kCases;
  nowhere.backends.clear();
  EXPECT_THAT(checkOperator(op, nowhere), ElementsAre("squareLess: there are no backends"));
  op.reference = nullptr;
  EXPECT_THAT(checkOperator(op, kCases),
              ElementsAre("squareLess has no rule of types or no reference"));
}

TEST(Conformance, FindsRefusalsOfAnotherKind) {
  CustomOperator op = squareLess();
  op.type = [](const auto& operands) { return operands.at(1); };
  EXPECT_THAT(
      checkOperator(op, {.cases = {{{kSingle, kSingle}}}, .refused = {{kSingle}}}),
      ElementsAre(StartsWith("squareLess(f32[8,4]) is refused by no std::invalid_argument: ")));
}

TEST(Conformance, DrawsUnsignedNumbersFromZero) {
  const CustomOperator square{.name = "square",
                              .type = [](const auto& operands) { return operands[0]; },
                              .reference =
                                  [](const auto& x) {
                                    std::vector<double> result = x[0].values;
                                    for (double& value : result) value *= value;
                                    return result;
                                  },
                              .compute = [](const auto& x) { return x[0] * x[0]; }};
  EXPECT_THAT(checkOperator(square, {.cases = {{{{dtype::u8, {50}}}, -9, 9}}}), IsEmpty());
}

TEST(Conformance, FindsWhatDoesNotFuse) {
  CustomOperator wrong = squareLess();
  wrong.compute = [](const auto& x) {
    Variable square = x[0] * x[0];
    square.eval();
    return square - x[1];
  };
  EXPECT_THAT(
      checkOperator(wrong, {.cases = {{{kSingle, kSingle}}}}),
      ElementsAre("squareLess(f32[8,4], f32[8,4]) between two maps takes 3 kernels, not 1"));
  // A value that is read while it is recorded ends its plan.
  wrong.compute = [](const auto& x) {
    const Variable square = x[0] * x[0];
    square.tensor().template toHostVector<float>();
    return square - x[1];
  };
  EXPECT_THAT(
      checkOperator(wrong, {.cases = {{{kSingle, kSingle}}}}),
      ElementsAre("squareLess(f32[8,4], f32[8,4]) between two maps takes 3 kernels, not 1"));
}

// Values that depend on the mode.
TEST(Conformance, FindsModesThatDiffer) {
  CustomOperator wrong = squareLess();
  wrong.compute = [](const auto& x) {
    const bool isLazy = defaultTensorBackend().name() == getBackend("lazy", "cpu").name();
    const Variable result = x[0] * x[0] - x[1];
    return isLazy ? result : result * (1 + 0x1p-23);
  };
  const Conformance cases{.cases = {{{kSingle, kSingle}}}};
  EXPECT_THAT(checkOperator(wrong, cases), Contains(HasSubstr("eager on cpu: element ")));
  Conformance loose = cases;
  loose.isExact = false;
  EXPECT_THAT(checkOperator(wrong, loose), IsEmpty());
}

}  // namespace
}  // namespace fl
