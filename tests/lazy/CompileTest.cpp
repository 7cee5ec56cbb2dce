// fl::compile: what replays compute, follow and refuse, held against the same calls without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "tests/ErrorOf.h"
#include "tests/lazy/Counts.h"
#include "tests/lazy/Floats.h"

namespace fl::test {
namespace {

using ::testing::HasSubstr;

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

// Promise C2. Nothing but the last such function has the kernel that writes over its state.
TEST(CompileTest, AFunctionThatIsCompiledAnewHasItsKernels) {
  Tensor state = of({0, 0});
  uint64_t made = 0;
  for (int i = 0; i < 4; ++i) {
    const testing::Counts counts;
    auto f = fl::compile([&](const Tensor& x) {
      state += x;
      return sum(state);
    });
    for (int call = 0; call < 3; ++call) f(of({1, 2}));
    EXPECT_EQ(f.plans(), 1u);
    made = counts.kernelsCompiled() + counts.kernelsLoaded();
  }
  EXPECT_EQ(made, 0u);
  EXPECT_EQ(valuesOf(state), (Floats{12, 24}));
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

// Neither when it was recorded once nor when it is replayed.
TEST(CompileTest, KeepsNoArgumentAlive) {
  auto f = fl::compile([&](const Tensor& x) { return x * 2; });
  for (int i = 0; i < 4; ++i) {
    Tensor x = of({3, 4});
    const std::weak_ptr<MemoryBlock> memory = x.value()->data();
    EXPECT_EQ(valuesOf(f(x)), (Floats{6, 8}));
    x = Tensor();
    EXPECT_TRUE(memory.expired()) << i;
  }
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
