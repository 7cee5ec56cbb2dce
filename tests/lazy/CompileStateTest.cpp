// fl::compile: the tensors outside a function that it assigns to, swaps and moves, over replays.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "tests/lazy/BufferLog.h"
#include "tests/lazy/Floats.h"

namespace fl::test {
namespace {

const void* dataOf(const Tensor& tensor) { return tensor.value()->data()->data(); }

TEST(CompileState, StateIsThatOfTheTensorsOutside) {
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

TEST(CompileState, ASyncElsewhereLeavesWhatIsRecorded) {
  auto f = fl::compile([](const Tensor& x) {
    const Tensor twice = x * 2;
    std::thread([] { fl::sync(); }).join();
    return twice + 1;
  });
  EXPECT_EQ(valuesOf(f(of({1}))), (Floats{3}));
  EXPECT_EQ(valuesOf(f(of({2}))), (Floats{5}));
  EXPECT_EQ(f.plans(), 1u);
  EXPECT_EQ(valuesOf(f(of({3}))), (Floats{7}));
}

// Copies share a value until one of them has another.
TEST(CompileState, TensorsThatShareAValueAreTwo) {
  Tensor policy = of({1, 2});
  const Tensor reference = policy;
  auto f = fl::compile([&] { return policy - reference; });
  f(), f();
  EXPECT_EQ(f.plans(), 1u);
  policy = of({5, 5});
  EXPECT_EQ(valuesOf(f()), (Floats{4, 3}));
  f();
  EXPECT_EQ(f.plans(), 1u);
  policy = of({1, 3});
  const uint64_t plans = runtime::counters().plansBuilt;
  EXPECT_EQ(valuesOf(f()), (Floats{0, 1}));
  policy = reference;
  EXPECT_EQ(valuesOf(f()), (Floats{0, 0}));
  EXPECT_EQ(runtime::counters().plansBuilt, plans) << "two that share a value are still two";
}

TEST(CompileState, ACopyThatIsReadOnTheHostIsKnown) {
  const Tensor given = of({1, 1});
  Tensor copy = given;
  auto f = fl::compile([&] {
    const Tensor twice = given * 2;
    return copy(0).scalar<float>() > 2 ? twice : twice + 1;
  });
  f(), f();
  EXPECT_EQ(valuesOf(f()), (Floats{3, 3}));
  copy = of({7, 7});
  EXPECT_EQ(valuesOf(f()), (Floats{2, 2}));
}

TEST(CompileState, StateThatIsAssignedTheSameStaysShared) {
  Tensor a = of({1, 2}), b = of({0, 0});
  auto f = fl::compile([&](const Tensor& x) {
    a = a + b + x;
    b = a;
  });
  const Tensor x = of({1, 1});
  f(x), f(x), f(x);
  const uint64_t plans = runtime::counters().plansBuilt;
  f(x), f(x), f.run(2, x);
  EXPECT_EQ(runtime::counters().plansBuilt, plans);
  // 1 2, 2 3, 5 7, 11 15, ...
  EXPECT_EQ(valuesOf(a), (Floats{191, 255}));
  EXPECT_EQ(valuesOf(b), (Floats{191, 255}));
}

// As after a call that runs the function: it finds them as it left them.
TEST(CompileState, StateThatIsAssignedATensorSharesIts) {
  const Tensor given = full({1000}, 2.0f);
  Tensor newest = full({1000}, 1.0f), middle = newest.copy(), oldest = middle.copy();
  Tensor total = full({1000}, 0.0f);
  int runs = 0;
  auto f = fl::compile([&] {
    ++runs;
    total += newest + middle + oldest;
    oldest = middle;
    middle = newest;
    newest = given;
  });
  f.run(4);
  const uint64_t bytes = runtime::counters().bytesMoved;
  f(), f(), f.run(3);
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(runtime::counters().bytesMoved, bytes + 5 * 20'000) << "total's, and the sum's three";
  for (const Tensor& each : {newest, middle, oldest}) EXPECT_EQ(dataOf(each), dataOf(given));
  EXPECT_EQ(total(0).scalar<float>(), 3 + 4 + 5 + 6 * 6);
  newest += 1;
  EXPECT_EQ(given(0).scalar<float>(), 2);
  f();
  EXPECT_EQ(total(0).scalar<float>(), 48 + 7);
  EXPECT_EQ(middle(0).scalar<float>(), 3);
}

// Fewer of them at each call, until none does.
TEST(CompileState, AHistoryMayBeginAsOneTensor) {
  std::vector<Tensor> history(10, full({2}, 0.0f));
  Floats expected(10, 0);
  int runs = 0;
  auto f = fl::compile([&](const Tensor& x) {
    ++runs;
    std::ranges::rotate(history, history.begin() + 1);
    history.back() = history[8] + x;
    return sum(concatenate(history, 1), {1});
  });
  for (int i = 0; i < 15; ++i) {
    std::ranges::rotate(expected, expected.begin() + 1);
    expected.back() = expected[8] + static_cast<float>(i);
    const float total = std::accumulate(expected.begin(), expected.end(), 0.0f);
    EXPECT_EQ(valuesOf(f(full({2}, i))), (Floats{total, total})) << i;
  }
  EXPECT_EQ(runs, 2);
  for (size_t i = 0; i < history.size(); ++i)
    EXPECT_EQ(valuesOf(history[i]), (Floats{expected[i], expected[i]}));
}

TEST(CompileState, WhatIsAssignedMayBeResultsToo) {
  Tensor state = of({1}), copy = of({0}), before = of({0});
  auto f = fl::compile([&](const Tensor& x) -> std::vector<Tensor> {
    before = state;
    state = state * 2 + x;
    copy = state;
    return {state, before, copy};
  });
  float expected = 1;
  for (int i = 0; i < 5; ++i) {
    const std::vector<Tensor> results = f(of({1}));
    const float old = std::exchange(expected, expected * 2 + 1);
    for (const Tensor& each : {results[0], results[2], state, copy})
      EXPECT_EQ(valuesOf(each), (Floats{expected}));
    for (const Tensor& each : {results[1], before}) EXPECT_EQ(valuesOf(each), (Floats{old}));
  }
  EXPECT_EQ(f.plans(), 1u);
}

// A tensor that is assigned gets another storage; views show the one that they were made of.
TEST(CompileState, ViewsKeepWhatTheyShowWhenTheirTensorIsAssigned) {
  Tensor state = of({1, 1}), other = of({-1, -1});
  auto twice = fl::compile([&] { state = state * 2; });
  std::vector<Tensor> seen;
  for (int i = 0; i < 6; ++i) twice(), seen.push_back(state(0));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(seen[i].scalar<float>(), 2 << i) << i;
  EXPECT_EQ(twice.plans(), 1u);
  const Tensor view = state(span);
  twice.run(3);
  EXPECT_EQ(valuesOf(view), (Floats{64, 64}));
  EXPECT_EQ(valuesOf(state), (Floats{512, 512}));
  auto swap = fl::compile([&] { std::swap(state, other); });
  swap(), swap(), swap();
  const Tensor swapped = state(1);
  swap();
  EXPECT_EQ(swapped.scalar<float>(), -1);
  EXPECT_EQ(valuesOf(state), (Floats{512, 512}));
}

TEST(CompileState, ViewsShowWhatIsWrittenInPlace) {
  Tensor state = of({1, 2});
  const Tensor view = state(1);
  auto f = fl::compile([&] { state += 1; });
  for (int i = 0; i < 5; ++i) f();
  EXPECT_EQ(view.scalar<float>(), 7);
  EXPECT_EQ(f.plans(), 1u);
}

// One that the function uses follows its storage, not its tensor.
TEST(CompileState, AViewOutsideIsOfItsStorage) {
  Tensor x = of({1, 1}), y = of({7, 7}), out;
  Tensor view = x(span);
  auto read = fl::compile([&] { out = view * 2; });
  read(), read(), read();
  EXPECT_EQ(read.plans(), 1u);
  x = of({100, 100});
  read(), read(), read();
  EXPECT_EQ(valuesOf(out), (Floats{2, 2}));
  EXPECT_EQ(read.plans(), 1u);
  Tensor part = y(0);
  auto write = fl::compile([&] { part *= 2; });
  write(), write(), write();
  EXPECT_EQ(valuesOf(y), (Floats{56, 7}));
  y = of({0, 0});
  write();
  EXPECT_EQ(part.scalar<float>(), 112);
  EXPECT_EQ(valuesOf(y), (Floats{0, 0}));
  // The variable is another view, or none.
  view = y(span);
  read();
  EXPECT_EQ(valuesOf(out), (Floats{0, 0}));
  read();
  std::swap(view, x);
  read();
  EXPECT_EQ(valuesOf(out), (Floats{200, 200}));
  auto made = std::make_unique<Tensor>(x(0));
  auto twice = fl::compile([&] { out = *made * 2 + full(made->shape(), 1.0); });
  twice(), twice(), twice();
  made = std::make_unique<Tensor>(part);
  twice();
  EXPECT_EQ(valuesOf(out), (Floats{225}));
}

// Other views of its tensor are made, moved and assigned, and it is replayed.
TEST(CompileState, OtherViewsAreNoneOfIts) {
  const Tensor table = full({2, 4}, 2.0), row = table(span, 3), x = of({1, 2});
  auto f = fl::compile([&] { return x * row; });
  f(), f();
  const uint64_t plans = runtime::counters().plansBuilt;
  std::vector<Tensor> rows;
  for (int i = 0; i < 4; ++i) {
    rows.push_back(table(span, i));
    Tensor moved = std::move(rows.back());
    moved = moved * 2;
    EXPECT_EQ(valuesOf(f()), (Floats{2, 4}));
  }
  EXPECT_EQ(f.plans(), 1u);
  sync();
  EXPECT_EQ(runtime::counters().plansBuilt, plans);
}

TEST(CompileState, ALockedTensorThatIsAssignedIsLockedNoMore) {
  Tensor state = of({1, 2});
  auto f = fl::compile([&](const Tensor& x) { state = x.astype(dtype::f64); });
  f(of({1})), f(of({1})), f(of({1}));
  state = of({1, 2});
  const float* const memory = state.device<float>();
  const Tensor old = state(span);
  f(of({5, 6}));
  EXPECT_EQ(state.type(), dtype::f64);
  EXPECT_FALSE(state.isLocked());
  EXPECT_EQ(memory[0], 1);
  EXPECT_EQ(valuesOf(old), (Floats{1, 2}));
}

// Their dense form is not made to look at their types.
TEST(CompileState, SparseAndLockedTensorsAreNotCopied) {
  constexpr Dim kSize = 200'000;
  const Tensor places = Tensor::fromVector(std::vector<int>{0, 1});
  const Tensor sparse(kSize, kSize, of({1, 2}), places, places, StorageType::COO);
  Tensor locked = full({3000}, 1.0);
  locked.device<float>();
  auto f = fl::compile([&](const Tensor& x) {
    return sum(matmul(sparse, x)) * static_cast<double>(locked.elements());
  });
  const Tensor x = full({kSize}, 1.0);
  f(x), f(x);
  EXPECT_EQ(f.plans(), 1u);
  const auto made = testing::buffersMade([&] { EXPECT_EQ(f(x).scalar<float>(), 9000); });
  for (const size_t bytes : made) {
    EXPECT_LT(bytes, 10 * kSize) << "of a vector at most";
    EXPECT_NE(bytes, locked.bytes());
  }
}

// The shape and the dtype of what it assigns to, or asks, without reading the elements.
TEST(CompileState, TypesThatItAsksForAreThoseOfTheCall) {
  Tensor state = of({1, 1}), like = of({1, 1}), out;
  auto reset = fl::compile([&] { state = 2.5; });
  auto ones = fl::compile([&] { out = full(like.shape(), 1.0, like.type()); });
  for (int i = 0; i < 3; ++i) reset(), ones();
  EXPECT_EQ(reset.plans() + ones.plans(), 2u);
  state = of({5, 5, 5});
  like = of({1});
  reset(), ones();
  EXPECT_EQ(valuesOf(state), (Floats{2.5, 2.5, 2.5}));
  EXPECT_EQ(valuesOf(out), (Floats{1}));
  state = full({2}, 5, dtype::s32);
  reset();
  EXPECT_EQ(state.type(), dtype::s32);
  EXPECT_EQ(state(0).scalar<int>(), 2);
}

// What a Tensor() is before it is assigned, or after.
TEST(CompileState, EmptyTensorsAreState) {
  Tensor cache, out, state = of({1, 1});
  auto append = fl::compile([&] { out = concatenate(std::vector<Tensor>{cache, state}, 0); });
  auto clear = fl::compile([&] { state = Tensor(); });
  append(), append(), append();
  EXPECT_EQ(append.plans(), 1u);
  cache = of({5});
  append();
  EXPECT_EQ(valuesOf(out), (Floats{5, 1, 1}));
  clear(), clear(), clear();
  EXPECT_EQ(clear.plans(), 1u);
  state = of({7, 7});
  clear();
  EXPECT_EQ(state.shape(), Shape({0}));
  Tensor mask;
  auto masked = fl::compile([&](const Tensor& x) { return mask.hasAdapter() ? x * mask : x * 1; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(valuesOf(masked(of({2, 2}))), (Floats{2, 2}));
  EXPECT_EQ(masked.plans(), 1u);
  mask = Tensor();
  mask = of({0, 3});
  EXPECT_EQ(valuesOf(masked(of({2, 2}))), (Floats{0, 6}));
  auto sums = fl::compile([&](const Tensor& x) {
    const Tensor none;
    Tensor sum = none;
    for (int i = 0; i < 2; ++i) sum = sum.hasAdapter() ? sum + x : x;
    mask = mask.isEmpty() ? sum : mask + sum;
    return sum;
  });
  for (int i = 0; i < 6; ++i) {
    mask = Tensor();
    EXPECT_EQ(valuesOf(sums(of({2}))), (Floats{4}));
    EXPECT_EQ(valuesOf(mask), (Floats{4}));
  }
  // Those of the function alone are none.
  auto local = fl::compile([&](const Tensor& x) {
    std::vector<Tensor> results(2);
    results[0] = x + 1;
    results[1] = std::move(results[0]);
    return results;
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(valuesOf(local(of({1}))[1]), (Floats{2}));
  EXPECT_EQ(local.plans(), 1u);
}

TEST(CompileState, ResultsAreValuesNotViews) {
  Tensor state = of({0, 1, 2});
  auto f = fl::compile([&] {
    state += 1;
    return state(range(0, 2));
  });
  std::vector<Tensor> results;
  for (int i = 0; i < 5; ++i) results.push_back(f());
  for (int i = 0; i < 5; ++i) {
    const float first = static_cast<float>(i + 1);
    EXPECT_EQ(valuesOf(results[i]), (Floats{first, first + 1})) << i;
  }
}

TEST(CompileState, WhatIsWrittenWholeIsNotRead) {
  Tensor state = of({1, 1});
  const Tensor given = of({3, 3});
  auto f = fl::compile([&] { state(span) = given; });
  f(), f();
  EXPECT_EQ(f.plans(), 1u);
  state -= 1;
  f();
  EXPECT_EQ(f.plans(), 1u);
  EXPECT_EQ(valuesOf(state), (Floats{3, 3}));
}

TEST(CompileState, Tf32HasPlansOfItsOwn) {
  auto f = fl::compile([](const Tensor& x) { return matmul(x, x); });
  const Tensor x = of({1, 2});
  const auto replay = [&] { f(reshape(x, {1, 2})(span, range(0, 1))); };
  replay(), replay();
  EXPECT_EQ(f.plans(), 1u);
  const Tf32Scope tf32;
  replay(), replay();
  EXPECT_EQ(f.plans(), 2u);
}

TEST(CompileState, StateIsWrittenInPlace) {
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

TEST(CompileState, RunKeepsStateInPlace) {
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

TEST(CompileState, RunKeepsParametersAndTheirStateInPlace) {
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

TEST(CompileState, APartOfTheStateIsWritten) {
  Tensor state = of({1, 2, 3, 4}), expected = state;
  const auto write = [](Tensor& tensor, const Tensor& x) { tensor(range(1, 3)) += x; };
  auto f = fl::compile([&](const Tensor& x) { write(state, x); });
  for (int i = 0; i < 5; ++i) {
    f(of({1, 10}));
    write(expected, of({1, 10}));
    EXPECT_EQ(valuesOf(state), valuesOf(expected));
  }
}

TEST(CompileState, SwappedTensorsAreState) {
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

TEST(CompileState, ASwapCopiesNothing) {
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

TEST(CompileState, ARotatedHistoryIsState) {
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

TEST(CompileState, WhatIsMovedFromIsStateWhereverItGoes) {
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

TEST(CompileState, TensorsMaySwapBetweenCalls) {
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

TEST(CompileState, TensorsMayMoveToAnotherPlace) {
  std::vector<Tensor> weights = {of({1}), of({2})};
  auto f = fl::compile([&](const Tensor& x) { return weights[0] = weights[0] + weights[1] + x; });
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(valuesOf(f(of({1}))), (Floats{static_cast<float>(4 + 3 * i)}));
    if (i % 4 == 3) {
      weights.reserve(2 * weights.capacity());
    }
  }
}

TEST(CompileState, AViewThatIsAssignedIsNotTheWhole) {
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

TEST(CompileState, AMemberThatIsAssignedIsState) {
  Tensor last;  // without a value at first
  auto f = fl::compile([&](const Tensor& x) { last = x * x; });
  for (int i = 0; i < 6; ++i) {
    const float v = static_cast<float>(i);
    f(of({v}));
    EXPECT_EQ(valuesOf(last), (Floats{v * v}));
  }
  EXPECT_EQ(f.plans(), 1u);
}

TEST(CompileState, StateThatIsReplacedIsRecordedAnew) {
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

}  // namespace
}  // namespace fl::test
