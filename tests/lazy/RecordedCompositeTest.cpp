// Functions that lazy mode records as one node: what they compute, and which it runs each time all
// the same.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "fl/lazy/Compile.h"
#include "fl/tensor/Capture.h"
#include "fl/tensor/Composite.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"
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

TEST(RecordedComposite, RunsOnceForOperandsOfOneKind) {
  const auto shares = [](const Tensor& x, Dim) {
    ++timesRun;
    return x * 2.0 / (1.0 + x * x);
  };
  callFiveTimes(shares, 1, numbers(8, 1), Dim(0));
  EXPECT_EQ(timesRun, 1);
  callFiveTimes(shares, 0.8f, numbers(8, 2), Dim(0));
  EXPECT_EQ(timesRun, 0) << "values are no part of what is known";
  callFiveTimes(shares, 1, numbers(9, 1), Dim(0));
  EXPECT_EQ(timesRun, 1) << "another shape";
  const Counts counts;
  callFiveTimes(shares, 1, numbers(9, 1), Dim(1));
  EXPECT_EQ(timesRun, 1) << "another argument";
  EXPECT_EQ(counts.plansBuilt(), 0u) << "it computes the same";
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
  EXPECT_EQ(timesRun, 1);
}

TEST(RecordedComposite, OfAnotherNumberSharesThePlan) {
  const auto scaled = [](const Tensor& x, double by) { return exp(x) * by; };
  for (int by = 1; by <= 3; ++by) {
    const Counts counts;
    const Tensor result = composite("scaled", scaled, numbers(5, 0), static_cast<double>(by));
    EXPECT_EQ(result.toHostVector<float>()[4], by);
    EXPECT_EQ(counts.plansBuilt(), by == 1 ? 1u : 0u) << by;
  }
}

TEST(RecordedComposite, LeavesTheLinesOfOthersInErrors) {
  const Tensor x = numbers(3, 2), at = Tensor::fromVector(std::vector<int>{0, 9});
  const auto looked = [&] { return x(at); };
  const std::string alone = test::errorOf([&] { looked().toHostVector<float>(); });
  EXPECT_NE(alone.find("9 is out of range"), std::string::npos) << alone;
  const Tensor share = sigmoid(x), found = looked(), both = sigmoid(found) + share(0);
  EXPECT_EQ(test::errorOf([&] { both.toHostVector<float>(); }), alone);
}

std::vector<Tensor> sumAndProduct(const Tensor& x, const Tensor& y) {
  const auto both = [](const Tensor& x, const Tensor& y) {
    return std::vector<Tensor>{x + y, x * y, sum(x)};
  };
  return composite("both", both, x, y);
}

TEST(RecordedComposite, HasSeveralResultsInOnePlan) {
  const Counts counts;
  std::vector<Tensor> both = sumAndProduct(numbers(4, 2), numbers(4, 3));
  const Tensor more = both[0] * both[1];
  EXPECT_EQ(more.toHostVector<float>(), std::vector<float>(4, 30));
  EXPECT_EQ(counts.realizes(), 1u);
  EXPECT_EQ(both[0].toHostVector<float>(), std::vector<float>(4, 5));
  EXPECT_EQ(both[1].toHostVector<float>(), std::vector<float>(4, 6));
  EXPECT_EQ(both[2].scalar<float>(), 8);
  EXPECT_EQ(counts.realizes(), 1u) << "all that is held was computed";
}

TEST(RecordedComposite, ComputesNoResultThatNobodyHolds) {
  const auto three = [](const Tensor& x, const Tensor& y) {
    return std::vector<Tensor>{sum(sum(x) * y), x * y, sum(sum(y) * x)};
  };
  const Tensor x = numbers(1 << 16, 2), y = numbers(1 << 16, 3);
  for (int i = 0; i < 2; ++i) {
    const Counts counts;
    const Tensor product = composite("three", three, x, y)[1];
    EXPECT_EQ(product.toHostVector<float>()[7], 6);
    EXPECT_EQ(counts.launches(), 1u);
  }
}

// Another thread computes one result alone, where nobody else holds an operand: it must not take
// that operand's place.
TEST(RecordedComposite, KeepsWhatItsOtherResultsRead) {
  Tensor x = numbers(1 << 12, 2);
  const Tensor y = numbers(1 << 12, 3);
  std::vector<Tensor> both = sumAndProduct(x, y);
  x = Tensor();
  const Tensor first = std::move(both[0]);
  std::thread other([first] {
    BackendScope scope(first.backend());
    EXPECT_EQ((first + 1).toHostVector<float>()[9], 6);  // of this thread's plan
  });
  other.join();
  EXPECT_EQ(both[1].toHostVector<float>(), std::vector<float>(1 << 12, 6));
  EXPECT_EQ(both[2].scalar<float>(), 2 << 12);
  EXPECT_EQ(first.toHostVector<float>()[9], 5);
}

TEST(RecordedComposite, KnowsWhichArgumentsAreTensors) {
  const auto difference = [](const auto& x, const auto& y) { return x - y; };
  const Tensor x = numbers(3, 5);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(composite("f", difference, x, 2.0).toHostVector<float>()[0], 3);
    EXPECT_EQ(composite("f", difference, 2.0, x).toHostVector<float>()[0], -3);
  }
}

// A loop of nothing but calls with several results is run in between, never with a part missing.
TEST(RecordedComposite, OfSeveralResultsIsRunWhenEnoughIsPending) {
  const auto next = [](const Tensor& x, const Tensor& y) {
    return std::vector<Tensor>{x + 1, y + 2};
  };
  Tensor x = numbers(2, 0), y = numbers(2, 0);
  const Counts counts;
  const int times = 40'000;
  for (int i = 0; i < times; ++i) {
    std::vector<Tensor> both = composite("next", next, x, y);
    x = std::move(both[0]);
    y = std::move(both[1]);
  }
  EXPECT_GE(counts.realizes(), 1u);
  EXPECT_EQ(x.toHostVector<float>()[1], times);
  EXPECT_EQ(y.toHostVector<float>()[1], 2 * times);
}

TEST(RecordedComposite, ReturnsItsOperandAsItIs) {
  const auto chosen = [](const Tensor& x) {
    ++timesRun;
    return std::vector<Tensor>{x, x + 1};
  };
  timesRun = 0;
  const Tensor x = numbers(3, 2);
  for (int i = 0; i < 3; ++i) {
    const std::vector<Tensor> results = composite("chosen", chosen, x);
    EXPECT_EQ(results[0].toHostVector<float>(), std::vector<float>(3, 2));
    EXPECT_EQ(results[1].toHostVector<float>(), std::vector<float>(3, 3));
  }
  EXPECT_EQ(timesRun, 4) << "once to see that";
}

TEST(RecordedComposite, NamesElementsThatItLooksUp) {
  const auto looked = [](const Tensor& x, const Tensor& at) { return x(at) * 2; };
  const Tensor x = numbers(3, 2), at = Tensor::fromVector(std::vector<int>{0, 9});
  const auto error = [&](const auto& call) {
    return test::errorOf([&] { call().template toHostVector<float>(); });
  };
  const std::string alone = error([&] { return x(at); });
  EXPECT_NE(alone.find("9"), std::string::npos) << alone;
  for (int i = 0; i < 2; ++i) {
    const std::string within = error([&] { return composite("looked", looked, x, at); });
    EXPECT_EQ(within.substr(0, within.find(", at")), alone.substr(0, alone.find(", at")));
  }
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
