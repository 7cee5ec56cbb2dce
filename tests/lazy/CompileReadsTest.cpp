// fl::compile: what a function may read on the host while it is recorded, and what not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fl/fl.h"
#include "tests/ErrorOf.h"
#include "tests/lazy/Floats.h"

namespace fl::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

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
                                          "tests/lazy/CompileReadsTest.cpp:"));
      EXPECT_THAT(
          words,
          ContainsRegex("reads its argument [01], or what it computes from that, on the host, "
                        "which replays would not repeat: return it and read it after the "
                        "call, or choose with where\\(\\), at tests/lazy/CompileReadsTest.cpp:"));
    }
    EXPECT_EQ(f.plans(), 0u);
  }
  EXPECT_EQ(valuesOf(of({1}) + 1), (Floats{2}));
}

TEST(CompileReads, ReadsOfArgumentsOnTheHostAreErrors) {
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

TEST(CompileReads, TheErrorOfAReadHasBothLines) {
  int line = 0;
  const auto absolute = [&](const Tensor& x) {
    line = __LINE__ + 1;
    return x.scalar<float>() > 0 ? x : -x;
  };
  const int compiled = __LINE__ + 1;
  auto f = fl::compile(absolute);
  const std::string words = errorOf([&] { f(of({1})); });
  EXPECT_THAT(words,
              HasSubstr("given at tests/lazy/CompileReadsTest.cpp:" + std::to_string(compiled)));
  EXPECT_THAT(words, HasSubstr("(), at tests/lazy/CompileReadsTest.cpp:" + std::to_string(line)));
}

TEST(CompileReads, AReadOfATensorThatTheFunctionAssignsToIsAnErrorAndLosesNothing) {
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

TEST(CompileReads, AReadOfAHostNumberIsAnError) {
  auto f = fl::compile([](const Tensor& x) {
    const Tensor number = hostNumber([] { return Number::of(2.0f, dtype::f32); });
    return number.scalar<float>() > 1 ? x : -x;
  });
  EXPECT_THAT(errorOf([&] { f(of({1})); }),
              HasSubstr(" reads a number of fl::hostNumber, or what"));
  auto random = fl::compile([] { return rand({1}).scalar<float>() > 1 ? of({1}) : of({2}); });
  EXPECT_THAT(errorOf([&] { random(); }), HasSubstr(" reads a number of fl::hostNumber, or what"));
}

TEST(CompileReads, ConstantsAreReadOnTheHost) {
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

TEST(CompileReads, ATensorThatIsReadOnTheHostIsRecordedAnewWhenItIsAssigned) {
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

TEST(CompileReads, TensorsOfOtherBackendsAreRecordedAnewWhenTheyAreAssigned) {
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

TEST(CompileReads, ANumberThatIsCastIsRecordedAnewWhenItIsAssigned) {
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

TEST(CompileReads, WhatTheFunctionAssignedItReadsAsItIs) {
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

TEST(CompileReads, SyncInsideIsAnError) {
  EXPECT_THAT(errorOf([] { fl::compile([] { sync(); })(); }),
              HasSubstr("sync: a function that fl::compile records computes nothing; sync after "
                        "the call"));
}

TEST(CompileReads, ASeedInsideIsAnError) {
  auto f = fl::compile([](const Tensor& x) {
    setSeed(5);
    return x * rand({1});
  });
  EXPECT_THAT(errorOf([&] { f(of({1})); }),
              HasSubstr("setSeed: replays of a function that fl::compile records would not repeat "
                        "it; seed before the call, at tests/lazy/CompileReadsTest.cpp:"));
}

// Equal elements at two calls do not make it a constant.
TEST(CompileReads, ATensorThatIsReadAndLetGoOfIsAnError) {
  Variable hidden(full({1}, 0.0), false);
  auto f = fl::compile([&](const Tensor& x) {
    hidden = hidden * 0.5 + noGrad(x);
    return hidden.tensor();
  });
  std::string error;
  for (int call = 0; call < 4 && error.empty(); ++call)
    error = errorOf([&] { EXPECT_EQ(valuesOf(f(of({0}))), (Floats{0})); });
  EXPECT_THAT(error, HasSubstr("a tensor outside is read and let go of, as by a Variable that is "
                               "given another: hold a Tensor and assign to it; first read by\n  "
                               "%0 = mul %p0"));
  EXPECT_EQ(f.plans(), 0u);
}

// Promise B6: threads that record functions of the same tensors.
TEST(CompileReads, ThreadsMayMeetATensorAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const std::vector<Tensor> shared(50, full({1}, 1.0));
    std::vector<Floats> sums(3);
    std::vector<std::thread> threads;
    for (Floats& result : sums) {
      threads.emplace_back([&] {
        auto f = fl::compile([&](const Tensor& x) {
          Tensor all = x;
          for (const Tensor& each : shared) all = all + each;
          return all;
        });
        for (int call = 0; call < 3; ++call) result = valuesOf(f(of({2})));
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(sums, (std::vector<Floats>(3, {52})));
  }
}

// Pending, it is no part of what the function records.
TEST(CompileReads, WhatAnotherThreadRecordedIsAsAtTheCall) {
  const Tensor one = of({1});
  Tensor w = one;
  auto f = fl::compile([&] { return w * 10; });
  for (int i = 0; i < 5; ++i) {
    w = one * static_cast<float>(i);
    Floats got;
    std::thread([&] { got = valuesOf(f()); }).join();
    EXPECT_EQ(got, (Floats{10.0f * static_cast<float>(i)}));
  }
  EXPECT_EQ(f.plans(), 1u);
}

}  // namespace
}  // namespace fl::test
