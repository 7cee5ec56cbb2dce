// Functions that lazy mode records again without running them: what they compute, and which it
// runs each time all the same.
#include <gtest/gtest.h>

#include <vector>

#include "fl/lazy/Compile.h"
#include "fl/tensor/Capture.h"
#include "fl/tensor/Composite.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

int timesRun = 0;

Tensor numbers(Dim count, float value) {
  return Tensor::fromVector(std::vector<float>(count, value));
}

// Of the same values at each call: the first builds the plan that all share.
template <typename Definition, typename... Operands>
void callFiveTimes(Definition definition, float expected, const Operands&... operands) {
  timesRun = 0;
  const auto call = [&] { return composite("function", definition, operands...); };
  EXPECT_EQ(call().template toHostVector<float>()[0], expected);
  const Counts counts;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(call().template toHostVector<float>()[0], expected);
  EXPECT_EQ(counts.plansBuilt(), 0u);
}

TEST(RecordedComposite, RunsTwiceForOperandsOfOneKind) {
  const auto shares = [](const Tensor& x, Dim) {
    ++timesRun;
    return x * 2.0 / (1.0 + x * x);
  };
  callFiveTimes(shares, 1, numbers(8, 1), Dim(0));
  EXPECT_EQ(timesRun, 2);
  callFiveTimes(shares, 0.8f, numbers(8, 2), Dim(0));
  EXPECT_EQ(timesRun, 0) << "values are no part of what is known";
  callFiveTimes(shares, 1, numbers(9, 1), Dim(0));
  EXPECT_EQ(timesRun, 2) << "another shape";
  callFiveTimes(shares, 1, numbers(9, 1).astype(dtype::f16).astype(dtype::f32), Dim(1));
  EXPECT_EQ(timesRun, 2) << "another argument";
}

TEST(RecordedComposite, ReadsNewOperandsAndNumbers) {
  const auto scaled = [](const Tensor& x, const Tensor& number) {
    ++timesRun;
    return exp(x) * number;
  };
  timesRun = 0;
  for (int i = 1; i <= 4; ++i) {
    const Tensor number = hostNumber([i] { return Number::of(static_cast<float>(i)); });
    EXPECT_EQ(composite("scaled", scaled, numbers(3, 0), number).toHostVector<float>()[2], i);
  }
  EXPECT_EQ(timesRun, 2);
}

TEST(RecordedComposite, RunsEachTimeWhereTheHostCastsANumber) {
  const auto scaled = [](const Tensor& x, const Tensor& number) {
    ++timesRun;
    return x * number.astype(dtype::f32);
  };
  callFiveTimes(scaled, 6, numbers(3, 2), hostNumber([] { return Number::of(3); }));
  EXPECT_EQ(timesRun, 6) << "once to see that";
}

TEST(RecordedComposite, RunsEachTimeWhereItWrites) {
  const auto written = [](const Tensor& x) {
    ++timesRun;
    Tensor y = x + 1;
    y(0) = 7;
    return y;
  };
  callFiveTimes(written, 7, numbers(3, 2));
  EXPECT_EQ(timesRun, 6);
}

TEST(RecordedComposite, RunsInAFunctionThatIsCompiled) {
  const auto doubled = [](const Tensor& x) {
    ++timesRun;
    return x + x;
  };
  callFiveTimes(doubled, 4, numbers(3, 2));
  timesRun = 0;
  auto compiled = fl::compile([&](const Tensor& x) { return composite("function", doubled, x); });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(compiled(numbers(3, 2)).toHostVector<float>()[0], 4);
  EXPECT_EQ(timesRun, 2) << "recorded twice, then replayed";
}

}  // namespace
}  // namespace fl::testing
