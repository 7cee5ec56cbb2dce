// fl::compile: what replays compute, follow and refuse, held against the same calls without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "tests/ErrorOf.h"
#include "tests/lazy/BufferLog.h"

namespace fl::test {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<float>;

Tensor of(const Floats& values) { return Tensor::fromVector(values); }
Floats valuesOf(const Tensor& tensor) { return tensor.toHostVector<float>(); }

const void* dataOf(const Tensor& tensor) { return tensor.value()->data()->data(); }

TEST(CompileTest, RunsTheFunctionTwiceAndThenReplays) {
  int calls = 0;
  auto f = fl::compile([&](const Tensor& x, const Tensor& y) {
    ++calls;
    return exp(x) * 0 + x * 2 + y;
  });
  for (int i = 0; i < 5; ++i) {
    const float v = static_cast<float>(i);
    EXPECT_EQ(valuesOf(f(of({v, 1}), of({v, 10}))), (Floats{3 * v, 12})) << i;
    EXPECT_EQ(calls, std::min(i + 1, 2));
    EXPECT_EQ(f.plans(), i < 1 ? 0u : 1u);
  }
}

TEST(CompileTest, AReplayIsOneLaunchAndBuildsNothing) {
  auto f = fl::compile([](const Tensor& x) { return tanh(x * 2 + 1); });
  const Tensor x = of({0, 1, 2});
  f(x), f(x);
  sync();
  const uint64_t launches = runtime::counters().kernelLaunches;
  const uint64_t plans = runtime::counters().plansBuilt;
  const Tensor y = f(x);
  EXPECT_EQ(runtime::counters().kernelLaunches, launches + 1) << "at the call, not when it is read";
  EXPECT_EQ(valuesOf(y), valuesOf(tanh(x * 2 + 1)));
  f.run(10, x);
  EXPECT_EQ(runtime::counters().kernelLaunches, launches + 1 + 1 + 10);
  EXPECT_EQ(runtime::counters().plansBuilt, plans + 1) << "the comparison's alone";
}

TEST(CompileTest, EverySetOfTypesIsAPlan) {
  auto f = fl::compile([](const Tensor& x) { return x + x; });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(valuesOf(f(of({1, 2}))), (Floats{2, 4}));
    EXPECT_EQ(valuesOf(f(of({1, 2, 3}))), (Floats{2, 4, 6}));
    EXPECT_EQ(f(Tensor::fromVector(std::vector<int>{7})).scalar<int>(), 14);
  }
  EXPECT_EQ(f.plans(), 3u);
}

TEST(CompileTest, ReturnsNothingOrManyTensors) {
  Tensor total = of({0, 0});
  auto nothing = fl::compile([&](const Tensor& x) { total += x; });
  auto many = fl::compile([&](const Tensor& x) {
    return std::vector<Tensor>{x, total, x * 3, fromScalar(4.0f), Tensor::fromVector(Floats{5})};
  });
  auto none = fl::compile([&] { return total * 2; });
  for (int i = 1; i < 6; ++i) {
    nothing(of({1, 10}));
    const float sum = static_cast<float>(i);
    EXPECT_EQ(valuesOf(total), (Floats{sum, 10 * sum}));
    EXPECT_EQ(valuesOf(none()), (Floats{2 * sum, 20 * sum}));
    const std::vector<Tensor> results = many(of({sum}));
    ASSERT_EQ(results.size(), 5u);
    EXPECT_EQ(valuesOf(results[0]), (Floats{sum}));
    EXPECT_EQ(valuesOf(results[1]), (Floats{sum, 10 * sum}));
    EXPECT_EQ(valuesOf(results[2]), (Floats{3 * sum}));
    EXPECT_EQ(results[3].scalar<float>(), 4);
    EXPECT_EQ(valuesOf(results[4]), (Floats{5}));
  }
}

TEST(CompileTest, StateIsThatOfTheTensorsOutside) {
  Tensor state = of({1, 1});
  auto f = fl::compile([&](const Tensor& x) {
    const Tensor before = state;
    state = state * 2 + x;
    return before;
  });
  f(of({0, 1})), f(of({0, 1})), f(of({0, 1}));
  EXPECT_EQ(valuesOf(state), (Floats{8, 15}));
  const Tensor copy = state;
  EXPECT_EQ(valuesOf(f(of({0, 1}))), (Floats{8, 15}));
  EXPECT_EQ(valuesOf(state), (Floats{16, 31}));
  EXPECT_EQ(valuesOf(copy), (Floats{8, 15})) << "values do not change";
  state = of({0, -1});
  EXPECT_EQ(valuesOf(f.run(3, of({1, 1}))), (Floats{3, -1}));
  EXPECT_EQ(valuesOf(state), (Floats{7, -1}));
  state(0) = 0;
  f(of({5, 1}));
  EXPECT_EQ(valuesOf(state), (Floats{5, -1}));
  EXPECT_EQ(f.plans(), 1u);
}

TEST(CompileTest, StateIsWrittenInPlace) {
  Tensor state = full({1000, 1000}, 1.0f);
  auto f = fl::compile([&] { state += 1; });
  f(), f(), f();
  const uint64_t bytes = runtime::counters().bytesMoved;
  sync();
  const void* data = state.device<float>();
  state.unlock();
  f.run(5);
  EXPECT_EQ(runtime::counters().bytesMoved, bytes + 5 * 8'000'000);
  EXPECT_EQ(state.device<float>(), data);
  state.unlock();
  EXPECT_EQ(state(999, 999).scalar<float>(), 9);
}

TEST(CompileTest, RunKeepsStateInPlace) {
  Tensor state = full({1000, 10}, 1.0f), total = full({1000, 10}, 0.0f);
  auto f = fl::compile([&](const Tensor& x) {
    state = state * x + 1;
    total += state;
    return sum(total, {});
  });
  const Tensor x = of({0.5f});
  f(x), f(x), f(x);
  const std::vector<const void*> data = {dataOf(state), dataOf(total)};
  uint64_t bytesOfOne = 0;
  for (const uint64_t times : {1, 2, 3, 4}) {
    const uint64_t bytes = runtime::counters().bytesMoved;
    const auto made = testing::buffersMade([&] { f.run(static_cast<int64_t>(times), x); });
    const uint64_t moved = runtime::counters().bytesMoved - bytes;
    EXPECT_EQ(made, std::vector<size_t>(times, sizeof(float))) << "the results alone";
    bytesOfOne = times == 1 ? moved : bytesOfOne;
    EXPECT_EQ(moved, times * bytesOfOne) << "nothing is copied between the runs";
    EXPECT_EQ((std::vector<const void*>{dataOf(state), dataOf(total)}), data);
  }
  EXPECT_EQ(total(0, 0).scalar<float>(), 25.0001220703125f);
}

TEST(CompileTest, RunKeepsParametersAndTheirStateInPlace) {
  const Dim width = 64;
  const Tensor x = sin(arange({width, 8}, 0) + arange({width, 8}, 1) * 3);
  Linear layer(width, width);
  AdamOptimizer optimizer(layer.params(), 0.01);
  auto step = fl::compile([&](const Tensor& x) {
    optimizer.zeroGrad();
    Variable loss = mean(layer(noGrad(x)) * layer(noGrad(x)), {0, 1});
    loss.backward();
    optimizer.step();
  });
  step.run(5, x);
  const auto weightsData = [&] { return dataOf(layer.params()[0].tensor()); };
  const void* data = weightsData();
  for (const int64_t times : {1, 2, 3, 4}) {
    const auto made = testing::buffersMade([&] { step.run(times, x); });
    EXPECT_EQ(std::ranges::count(made, width * width * sizeof(float)), 0)
        << "none for weights, nor for their two moments";
    EXPECT_EQ(weightsData(), data);
  }
}

TEST(CompileTest, PlansOfManySetsOfTypesAreBounded) {
  int calls = 0;
  auto f = fl::compile([&](const Tensor& x) {
    ++calls;
    return x + 1;
  });
  const auto call = [&](Dim length) {
    const Floats ones(length, 1), twos(length, 2);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(valuesOf(f(of(ones))), twos);
    }
  };
  for (Dim length = 1; length <= 64; ++length) {
    call(length);
    EXPECT_EQ(f.plans(), static_cast<size_t>(length));
  }
  call(1);
  EXPECT_EQ(calls, 2 * 64) << "all are there";
  call(65);
  EXPECT_EQ(f.plans(), 64u);
  calls = 0;
  call(1);
  EXPECT_EQ(calls, 0) << "used lately";
  call(2);
  EXPECT_EQ(calls, 2) << "not used for longest, so it went";
  EXPECT_EQ(f.plans(), 64u);
}

TEST(CompileTest, AnotherBudgetIsAnotherPlan) {
  int calls = 0;
  auto f = fl::compile([&](const Tensor& x) {
    ++calls;
    return x + 1;
  });
  for (const size_t budget : {0, 1 << 20, 0}) {
    setMemoryBudget(budget);
    f(of({1})), f(of({1})), f(of({1}));
  }
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(f.plans(), 2u);
}

TEST(CompileTest, APartOfTheStateIsWritten) {
  Tensor state = of({1, 2, 3, 4}), expected = state;
  const auto write = [](Tensor& tensor, const Tensor& x) { tensor(range(1, 3)) += x; };
  auto f = fl::compile([&](const Tensor& x) { write(state, x); });
  for (int i = 0; i < 5; ++i) {
    f(of({1, 10}));
    write(expected, of({1, 10}));
    EXPECT_EQ(valuesOf(state), valuesOf(expected));
  }
}

TEST(CompileTest, SwappedTensorsAreState) {
  Tensor a = of({1, 1}), b = of({2, 2});
  auto f = fl::compile([&](const Tensor& x) {
    a = a + x;
    std::swap(a, b);
    return a * 10 + b;
  });
  Floats expected = {1, 2};
  for (int i = 0; i < 7; ++i) {
    const float x = static_cast<float>(i);
    expected = {expected[1], expected[0] + x};
    const float result = expected[0] * 10 + expected[1];
    EXPECT_EQ(valuesOf(f(of({x, x}))), (Floats{result, result})) << i;
    EXPECT_EQ(valuesOf(a), (Floats{expected[0], expected[0]})) << i;
    EXPECT_EQ(valuesOf(b), (Floats{expected[1], expected[1]})) << i;
  }
  EXPECT_EQ(f.plans(), 1u);
}

TEST(CompileTest, ASwapCopiesNothing) {
  Tensor a = full({1000}, 1.0f), b = full({1000}, 2.0f);
  auto f = fl::compile([&] { std::swap(a, b); });
  f.run(4);
  const std::vector<const void*> data = {dataOf(b), dataOf(a)};
  const uint64_t bytes = runtime::counters().bytesMoved;
  EXPECT_EQ(testing::buffersMade([&] { f.run(5); }), std::vector<size_t>());
  EXPECT_EQ(runtime::counters().bytesMoved, bytes);
  EXPECT_EQ((std::vector<const void*>{dataOf(a), dataOf(b)}), data);
  EXPECT_EQ(a(999).scalar<float>(), 2);
}

TEST(CompileTest, ARotatedHistoryIsState) {
  std::vector<Tensor> history = {of({1}), of({2}), of({3})};
  auto f = fl::compile([&](const Tensor& x) {
    std::ranges::rotate(history, history.begin() + 1);
    history.back() = history[0] + x;
  });
  Floats expected = {1, 2, 3};
  for (int i = 0; i < 9; ++i) {
    const float x = static_cast<float>(i);
    f(of({x}));
    expected = {expected[1], expected[2], expected[1] + x};
    EXPECT_EQ(valuesOf(concatenate(history, 0)), expected) << i;
  }
  EXPECT_EQ(f.plans(), 1u);
}

TEST(CompileTest, WhatIsMovedFromIsStateWhereverItGoes) {
  Tensor state = of({1}), other = of({5});
  const auto next = [](Tensor value, const Tensor& x) { return value * 2 + x; };
  auto f = fl::compile([&](const Tensor& x) {
    state = next(std::move(state), x);
    Tensor taken = std::move(other);
    state += taken;
    other = std::move(taken);
  });
  float expected = 1;
  for (int i = 0; i < 6; ++i) {
    const float x = static_cast<float>(i);
    f(of({x}));
    expected = expected * 2 + x + 5;
    EXPECT_EQ(valuesOf(state), (Floats{expected})) << i;
    EXPECT_EQ(valuesOf(other), (Floats{5})) << i;
  }
  EXPECT_EQ(f.plans(), 1u);
}

TEST(CompileTest, TensorsMaySwapBetweenCalls) {
  Tensor a = of({1}), b = of({2});
  auto f = fl::compile([&](const Tensor& x) { return a = a * 10 + b + x; });
  float expectedA = 1, expectedB = 2;
  for (int i = 0; i < 6; ++i) {
    expectedA = expectedA * 10 + expectedB;
    EXPECT_EQ(valuesOf(f(of({0}))), (Floats{expectedA})) << i;
    std::swap(a, b), std::swap(expectedA, expectedB);
  }
  EXPECT_EQ(f.plans(), 1u);
}

TEST(CompileTest, TensorsMayMoveToAnotherPlace) {
  std::vector<Tensor> weights = {of({1}), of({2})};
  auto f = fl::compile([&](const Tensor& x) { return weights[0] = weights[0] + weights[1] + x; });
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(valuesOf(f(of({1}))), (Floats{static_cast<float>(4 + 3 * i)}));
    if (i % 4 == 3) {
      weights.reserve(2 * weights.capacity());
    }
  }
}

TEST(CompileTest, AViewThatIsAssignedIsNotTheWhole) {
  Tensor whole = of({1, 2, 3}), part = whole(0);
  auto f = fl::compile([&](const Tensor& x) {
    part = x * 2;
    return whole + 1;
  });
  for (int i = 0; i < 5; ++i) {
    const float x = static_cast<float>(i);
    EXPECT_EQ(valuesOf(f(of({x}))), (Floats{2, 3, 4}));
    EXPECT_EQ(valuesOf(part), (Floats{2 * x}));
    EXPECT_EQ(valuesOf(whole), (Floats{1, 2, 3}));
  }
}

TEST(CompileTest, AMemberThatIsAssignedIsState) {
  Tensor last;  // without a value at first
  auto f = fl::compile([&](const Tensor& x) { last = x * x; });
  for (int i = 0; i < 6; ++i) {
    const float v = static_cast<float>(i);
    f(of({v}));
    EXPECT_EQ(valuesOf(last), (Floats{v * v}));
  }
  EXPECT_EQ(f.plans(), 1u);
}

TEST(CompileTest, StateThatIsReplacedIsRecordedAnew) {
  auto state = std::make_unique<Tensor>(of({1}));
  auto f = fl::compile([&] { *state = *state + 1; });
  for (int i = 0; i < 3; ++i) {
    f.run(4);
    EXPECT_EQ(valuesOf(*state), (Floats{5}));
    state = std::make_unique<Tensor>(of({1}));
  }
  *state = of({1, 2});
  f.run(4);
  EXPECT_EQ(valuesOf(*state), (Floats{5, 6}));
}

struct Model {
  Model() {
    setSeed(7);
    net.add(Linear(6, 16));
    net.add(BatchNorm(0, 16));
    net.add(ReLU());
    net.add(Dropout(0.3));
    net.add(Linear(16, 3));
    net.add(LogSoftmax());
    setSeed(11);
  }
  Tensor step(FirstOrderOptimizer& optimizer, const Tensor& x, const Tensor& y) {
    optimizer.zeroGrad();
    Variable loss = categoricalCrossEntropy(net.forward(noGrad(x)), noGrad(y));
    loss.backward();
    optimizer.step();
    return loss.tensor();
  }
  Sequential net;
};

template <typename Optimizer, typename... Arguments>
void expectSameTraining(Arguments... arguments) {
  const Tensor x = sin(arange({6, 8}, 0) + arange({6, 8}, 1) * 3);
  const Tensor y = Tensor::fromVector(std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1});
  std::vector<Floats> results[2];
  for (const bool compiled : {false, true}) {
    Model model;
    Optimizer optimizer(model.net.params(), arguments...);
    auto step =
        fl::compile([&](const Tensor& x, const Tensor& y) { return model.step(optimizer, x, y); });
    for (int i = 0; i < 8; ++i) {
      if (i == 5) {
        optimizer.setLr(optimizer.getLr() / 4);
      }
      const Tensor loss = compiled ? step(x, y) : model.step(optimizer, x, y);
      results[compiled].push_back(valuesOf(loss));
    }
    for (const Variable& parameter : model.net.params()) {
      results[compiled].push_back(valuesOf(parameter.tensor()));
    }
    results[compiled].push_back(valuesOf(rand({4})));  // the stream goes on where it was
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(CompileTest, TrainingHasTheSameBits) {
  expectSameTraining<AdamOptimizer>(0.01);
  expectSameTraining<AdamWOptimizer>(0.01);
  expectSameTraining<AMSgradOptimizer>(0.01);
  expectSameTraining<AdadeltaOptimizer>(0.5);
  expectSameTraining<AdagradOptimizer>(0.05);
  expectSameTraining<LionOptimizer>(0.01, 0.9, 0.99, 0.1);
  expectSameTraining<NAGOptimizer>(0.05, 0.9, 0.1);
  expectSameTraining<NovogradOptimizer>(0.01);
  expectSameTraining<RMSPropOptimizer>(0.01);
  expectSameTraining<SGDOptimizer>(0.1, 0.9);
}

TEST(CompileTest, RandomNumbersGoOn) {
  auto f = fl::compile([] { return rand({3}); });
  setSeed(3);
  std::vector<Floats> drawn, expected;
  for (int i = 0; i < 5; ++i) {
    drawn.push_back(valuesOf(f()));
  }
  setSeed(3);
  for (int i = 0; i < 5; ++i) {
    expected.push_back(valuesOf(rand({3})));
  }
  EXPECT_EQ(drawn, expected);
  setSeed(3);
  EXPECT_EQ(valuesOf(f()), expected[0]);
}

TEST(CompileTest, HostNumbersAreTakenAnew) {
  double rate = 1;
  auto f = fl::compile([&](const Tensor& x) {
    const Tensor number = hostNumber([&] { return Number::of(rate, dtype::f64); });
    return x * number.astype(dtype::f32);
  });
  for (int i = 0; i < 5; ++i, rate *= 2) {
    EXPECT_EQ(valuesOf(f(of({3}))), (Floats{static_cast<float>(3 * rate)}));
  }
}

TEST(CompileTest, ATensorOfANumberIsFollowed) {
  Tensor rate = fromScalar(2.0f);
  auto f = fl::compile([&](const Tensor& x) { return x * rate; });
  f(of({1})), f(of({1}));
  EXPECT_EQ(valuesOf(f(of({3}))), (Floats{6}));
  rate = fromScalar(5.0f);
  EXPECT_EQ(valuesOf(f(of({3}))), (Floats{15}));
  EXPECT_EQ(f.plans(), 1u);
}

TEST(CompileTest, ANumberThatChangesIsAnError) {
  float rate = 1;
  int line = 0;
  auto f = fl::compile([&](const Tensor& x) {
    rate += 0.5f;
    return line = __LINE__, x * rate;
  });
  f(of({1}));
  const std::string words = errorOf([&] { f(of({1})); });
  EXPECT_THAT(words, HasSubstr("fl::compile: a number is 2 and was 1.5 at the call before; first "
                               "read by\n  %0 = mul %p0, %p1 : f32[1]  // "
                               "tests/lazy/CompileTest.cpp:" +
                               std::to_string(line)));
  EXPECT_THAT(words, HasSubstr("made by fl::hostNumber"));
}

TEST(CompileTest, ATensorThatIsMadeInsideMustBeTheSame) {
  auto same = fl::compile([](const Tensor& x) { return x + of({1, 2}); });
  same(of({0, 0})), same(of({0, 0}));
  EXPECT_EQ(valuesOf(same(of({3, 3}))), (Floats{4, 5}));
  float next = 0;
  auto other = fl::compile([&](const Tensor& x) { return x + of({next++}); });
  const auto calls = [&] { other(of({0})), other(of({0})), other(of({0})), other(of({0})); };
  EXPECT_THAT(errorOf(calls),
              HasSubstr("fl::compile: 4 calls of a function recorded no two that are the same: a "
                        "tensor that the function makes has other elements; first read by\n  "
                        "%0 = add %p0, %p1 : f32[1]"));
}

TEST(CompileTest, CallsThatDifferAreAnError) {
  int calls = 0;
  auto f = fl::compile([&](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < calls; ++i) {
      y = exp(y);
    }
    ++calls;
    return y;
  });
  f(of({0})), f(of({0})), f(of({0}));
  EXPECT_THAT(errorOf([&] { f(of({0})); }),
              HasSubstr("recorded no two that are the same: it has 3 operators and the nearest 2"));
}

// Calls of `read` with an argument, and with what is computed from one, are errors at `line`.
void expectReadsRefused(const std::string& name, const std::function<void(const Tensor&)>& read) {
  for (const bool computes : {false, true}) {
    auto f = fl::compile([&](const Tensor& y, const Tensor& x) {
      read(computes ? x * 2 + y : x);
      return x + y;
    });
    for (int call = 0; call < 2; ++call) {
      const std::string words = errorOf([&] { f(of({1}), of({1})); });
      EXPECT_THAT(words, HasSubstr(name + ": the function that fl::compile was given at "
                                          "tests/lazy/CompileTest.cpp:"));
      EXPECT_THAT(words, ::testing::ContainsRegex(
                             "reads its argument [01], or what it computes from that, on the host, "
                             "which replays would not repeat: return it and read it after the "
                             "call, or choose with where\\(\\), at tests/lazy/CompileTest.cpp:"));
    }
    EXPECT_EQ(f.plans(), 0u);
  }
  EXPECT_EQ(valuesOf(of({1}) + 1), (Floats{2}));
}

TEST(CompileTest, ReadsOfArgumentsOnTheHostAreErrors) {
  expectReadsRefused("scalar: host", [](const Tensor& x) { x.scalar<float>(); });
  expectReadsRefused("asScalar: host", [](const Tensor& x) { x.asScalar<double>(); });
  expectReadsRefused("toHostVector: host", [](const Tensor& x) { x.toHostVector<float>(); });
  expectReadsRefused("host", [](const Tensor& x) { std::free(x.host<float>()); });
  expectReadsRefused("device: host", [](const Tensor& x) { x.device<float>(); });
  expectReadsRefused("nonzero: host", [](const Tensor& x) { nonzero(x); });
  expectReadsRefused("host", [](const Tensor& x) { x(x > 0); });
  expectReadsRefused("exp: host", [](const Tensor& x) {
    const BackendScope eager("eager");
    exp(x);
  });
}

TEST(CompileTest, TheErrorOfAReadHasBothLines) {
  int line = 0;
  const auto absolute = [&](const Tensor& x) {
    line = __LINE__ + 1;
    return x.scalar<float>() > 0 ? x : -x;
  };
  const int compiled = __LINE__ + 1;
  auto f = fl::compile(absolute);
  const std::string words = errorOf([&] { f(of({1})); });
  EXPECT_THAT(words, HasSubstr("given at tests/lazy/CompileTest.cpp:" + std::to_string(compiled)));
  EXPECT_THAT(words, HasSubstr("(), at tests/lazy/CompileTest.cpp:" + std::to_string(line)));
}

TEST(CompileTest, AReadOfATensorThatTheFunctionAssignsToIsAnErrorAndLosesNothing) {
  Tensor state = of({1});
  auto f = fl::compile([&](const Tensor& x) {
    if (state.scalar<float>() > 100) {
      state = state * 0;
    }
    state = state + x;
  });
  EXPECT_THAT(errorOf([&] { f(of({1})); }),
              HasSubstr(" reads a tensor that it assigns to, or what it computes from that, on the "
                        "host, which replays would not repeat"));
  EXPECT_EQ(valuesOf(state), (Floats{2})) << "the function has returned by then";
  EXPECT_THAT(errorOf([&] { f(of({1})); }), HasSubstr("scalar: host: the function"));
  EXPECT_EQ(valuesOf(state), (Floats{3}));
  EXPECT_EQ(f.plans(), 0u);
}

TEST(CompileTest, AReadOfAHostNumberIsAnError) {
  auto f = fl::compile([](const Tensor& x) {
    const Tensor number = hostNumber([] { return Number::of(2.0f, dtype::f32); });
    return number.scalar<float>() > 1 ? x : -x;
  });
  EXPECT_THAT(errorOf([&] { f(of({1})); }),
              HasSubstr(" reads a number of fl::hostNumber, or what"));
  auto random = fl::compile([] { return rand({1}).scalar<float>() > 1 ? of({1}) : of({2}); });
  EXPECT_THAT(errorOf([&] { random(); }), HasSubstr(" reads a number of fl::hostNumber, or what"));
}

TEST(CompileTest, ConstantsAreReadOnTheHost) {
  int calls = 0;
  auto f = fl::compile([&](const Tensor& x) {
    ++calls;
    const Tensor made = of({3, 0, 4});
    const float sum = full({2}, 1.5f).scalar<float>() + made.toHostVector<float>()[2];
    return x * sum + nonzero(made).astype(dtype::f32);
  });
  for (int i = 0; i < 4; ++i) {
    const float v = static_cast<float>(i);
    EXPECT_EQ(valuesOf(f(of({v, 1}))), (Floats{5.5f * v, 7.5f}));
  }
  EXPECT_EQ(calls, 2);
}

TEST(CompileTest, ATensorThatIsReadOnTheHostIsRecordedAnewWhenItIsAssigned) {
  int calls = 0;
  Tensor sign = of({1});
  auto f = fl::compile([&](const Tensor& x) {
    ++calls;
    return (sign * 2).scalar<float>() > 0 ? x : -x;
  });
  for (const int recorded : {2, 4, 6}) {
    const float s = valuesOf(sign)[0];
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(valuesOf(f(of({3}))), (Floats{3 * s}));
    }
    EXPECT_EQ(calls, recorded);
    sign = -sign;
  }
}

TEST(CompileTest, TensorsOfOtherBackendsAreRecordedAnewWhenTheyAreAssigned) {
  Tensor factor, other;
  const auto set = [&](float value) {
    const BackendScope eager("eager");
    factor = of({value});
    other = fromScalar(value);
  };
  set(2);
  auto f = fl::compile([&](const Tensor& x) {
    const Tensor product = x * factor + other;
    const BackendScope eager("eager");
    return factor + other + 1;
  });
  auto g = fl::compile([&](const Tensor& x) { return x * factor + other; });
  for (const float value : {2.0f, 5.0f, 7.0f}) {
    set(value);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(valuesOf(f(of({3}))), (Floats{2 * value + 1}));
      EXPECT_EQ(valuesOf(g(of({3}))), (Floats{4 * value}));
    }
  }
}

TEST(CompileTest, ANumberThatIsCastIsRecordedAnewWhenItIsAssigned) {
  Tensor rate = fromScalar(2.0f);
  auto f = fl::compile([&](const Tensor& x) { return x * rate.astype(dtype::f64); });
  for (const double value : {2, 5, 7}) {
    rate = fromScalar(static_cast<float>(value));
    for (int i = 0; i < 4; ++i) {
      const Tensor x = Tensor::fromVector(std::vector<double>{3});
      EXPECT_EQ(f(x).toHostVector<double>(), (std::vector<double>{3 * value}));
    }
  }
}

TEST(CompileTest, WhatTheFunctionAssignedItReadsAsItIs) {
  Tensor state = of({9});
  auto f = fl::compile([&](const Tensor& x) {
    state = of({1});
    const Tensor sum = state + x + (state.scalar<float>() > 0 ? 1 : 0);
    return sum;
  });
  for (int i = 0; i < 5; ++i) {
    state = of({static_cast<float>(10 * i)});
    EXPECT_EQ(valuesOf(f(of({3}))), (Floats{5}));
    EXPECT_EQ(valuesOf(state), (Floats{1}));
  }
}

TEST(CompileTest, SyncInsideIsAnError) {
  EXPECT_THAT(errorOf([] { fl::compile([] { sync(); })(); }),
              HasSubstr("sync: a function that fl::compile records computes nothing; sync after "
                        "the call"));
}

TEST(CompileTest, AnIndexOutOfRangeChangesNothing) {
  Tensor state = of({1, 2, 3});
  int line = 0;
  auto f = fl::compile([&](const Tensor& index) {
    line = __LINE__, state = state + state(index);
    return state;
  });
  const auto at = [](std::vector<int> index) { return Tensor::fromVector(index); };
  f(at({0, 1, 2})), f(at({0, 1, 2}));
  EXPECT_EQ(valuesOf(f(at({2, 2, 2}))), (Floats{16, 20, 24}));
  const std::string words = errorOf([&] { f(at({0, 7, 1})); });
  EXPECT_THAT(words, HasSubstr("index: f32[3]: 7 is out of range for dimension 0"));
  EXPECT_THAT(words, HasSubstr("tests/lazy/CompileTest.cpp:" + std::to_string(line)));
  EXPECT_EQ(valuesOf(state), (Floats{16, 20, 24}));
  EXPECT_EQ(valuesOf(f(at({0, 0, 0}))), (Floats{32, 36, 40}));
}

TEST(CompileTest, ArgumentsMayBeNumbersViewsAndTheSame) {
  auto f = fl::compile([](const Tensor& x, const Tensor& y) { return x * 10 + y; });
  const Tensor table = of({1, 2, 3, 4});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(valuesOf(f(table(range(0, 2)), table(range(2, 4)))), (Floats{13, 24}));
    const Tensor x = of({1, 2});
    EXPECT_EQ(valuesOf(f(x, x)), (Floats{11, 22}));
    EXPECT_EQ(f(fromScalar(static_cast<float>(i)), fromScalar(1.0f)).scalar<float>(), 10 * i + 1);
    EXPECT_EQ(valuesOf(f(x + 1, x + 1)), (Floats{22, 33}));
  }
  EXPECT_EQ(f.plans(), 2u);
}

TEST(CompileTest, CompiledFunctionsMayCallOthers) {
  auto inner = fl::compile([](const Tensor& x) { return x + 1; });
  auto outer = fl::compile([&](const Tensor& x) { return inner(inner(x)); });
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(valuesOf(outer(of({1}))), (Floats{3}));
    EXPECT_EQ(valuesOf(inner(of({1}))), (Floats{2}));
  }
}

TEST(CompileTest, OtherBackendsRunTheFunction) {
  int calls = 0;
  auto f = fl::compile([&](const Tensor& x) {
    ++calls;
    return x * static_cast<float>(calls);
  });
  const BackendScope eager("eager");
  EXPECT_EQ(valuesOf(f(of({1}))), (Floats{1}));
  EXPECT_EQ(valuesOf(f.run(3, of({1}))), (Floats{4}));
  EXPECT_EQ(f.plans(), 0u);
}

TEST(CompileTest, AFunctionMayDoNothing) {
  int calls = 0;
  auto f = fl::compile([&] { ++calls; });
  f.run(5);
  EXPECT_EQ(calls, 2);
}

TEST(CompileTest, NoCallIsAnError) {
  auto f = fl::compile([](const Tensor& x) { return x; });
  EXPECT_THAT(errorOf([&] { f.run(0, of({1})); }),
              HasSubstr("fl::compile: run(0) asks for no call"));
}

}  // namespace
}  // namespace fl::test
