// fl::compile: random functions that assign, share, swap, move and write tensors outside them, each
// against the same function of other tensors that is called as it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "fl/fl.h"
#include "tests/lazy/Floats.h"

namespace fl::test {
namespace {

constexpr int kTensors = 5, kViews = 2;

struct World {
  std::vector<Tensor> tensors;
  std::vector<Tensor> views;  // of some tensors' parts
};

// What changes a world: which tensors, and a number.
struct Step {
  int kind = 0;
  int i = 0, j = 0, k = 0;
  float number = 0;
};

// Values stay small.
Tensor bounded(const Tensor& x) { return x - floor(x / 8) * 8; }

using Action = void (*)(World&, const Step&, const Tensor& x);

// What a function does, and, without an argument, what a program does between its calls.
const std::vector<Action> kActions = {
    [](World& w, const Step& s, const Tensor&) { w.tensors[s.i] = w.tensors[s.j]; },
    [](World& w, const Step& s, const Tensor&) { w.tensors[s.i] = w.tensors[s.j].copy(); },
    [](World& w, const Step& s, const Tensor& x) {
      w.tensors[s.i] = bounded(w.tensors[s.j] + w.tensors[s.k] * 2 + x);
    },
    [](World& w, const Step& s, const Tensor&) { w.tensors[s.i] += s.number; },
    [](World& w, const Step& s, const Tensor&) {
      w.tensors[s.i](range(1, 3)) = w.tensors[s.j](range(0, 2)) + s.number;
    },
    [](World& w, const Step& s, const Tensor& x) { w.tensors[s.i](span) = x; },
    [](World& w, const Step& s, const Tensor&) { std::swap(w.tensors[s.i], w.tensors[s.j]); },
    [](World& w, const Step&, const Tensor&) {
      std::ranges::rotate(w.tensors, w.tensors.begin() + 1);
    },
    [](World& w, const Step& s, const Tensor& x) {
      Tensor taken = std::move(w.tensors[s.i]);
      taken = bounded(taken + x);
      w.tensors[s.i] = w.tensors[s.j == s.i ? (s.i + 1) % kTensors : s.j];
      w.tensors[s.k] = std::move(taken);
    },
    [](World& w, const Step& s, const Tensor& x) {
      Tensor local = w.tensors[s.i];
      local(0) += x(1);
      w.tensors[s.j] = bounded(local);
    },
    [](World& w, const Step& s, const Tensor&) { w.views[s.i % kViews] += s.number; },
    [](World& w, const Step& s, const Tensor&) {
      w.tensors[s.j] = bounded(w.tensors[s.j] + sum(w.views[s.i % kViews], {0}));
    },
    [](World& w, const Step& s, const Tensor&) {
      w.views[s.i % kViews] = w.tensors[s.j](range(1, 3));  // the value
    },
};

World makeWorld() {
  World world;
  for (int i = 0; i < kTensors; ++i) world.tensors.push_back(full({4}, static_cast<float>(i % 3)));
  for (int i = 0; i < kViews; ++i) world.views.push_back(world.tensors[i](range(i, i + 2)));
  return world;
}

class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) {
    for (int i = pick(1, 6); i > 0; --i) function_.push_back(step());
    returned_ = pick(0, kTensors - 1);
  }

  Tensor call(World& world, const Tensor& x) const {
    for (const Step& step : function_) kActions[step.kind](world, step, x);
    return world.tensors[returned_];
  }
  // What happens to the world before the next call, if anything.
  std::optional<Step> nextEvent() { return pick(0, 2) == 0 ? std::optional(step()) : std::nullopt; }

 private:
  int pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  Step step() {
    const int kind = pick(0, static_cast<int>(kActions.size()) - 1), last = kTensors - 1;
    return {kind, pick(0, last), pick(0, last), pick(0, last), static_cast<float>(pick(1, 3))};
  }

  std::mt19937 random_;
  std::vector<Step> function_;
  int returned_ = 0;
};

void expectSame(const World& x, const World& y) {
  for (int i = 0; i < kTensors; ++i) EXPECT_EQ(valuesOf(x.tensors[i]), valuesOf(y.tensors[i])) << i;
  for (int i = 0; i < kViews; ++i) EXPECT_EQ(valuesOf(x.views[i]), valuesOf(y.views[i])) << i;
}

TEST(CompileRandom, CallsDoWhatTheFunctionDoes) {
  int runs = 0, calls = 0;
  for (uint32_t seed = 0; seed < 300 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Program program(seed);
    World compiled = makeWorld(), plain = makeWorld();
    auto f = fl::compile([&](const Tensor& x) {
      ++runs;
      return program.call(compiled, x);
    });
    for (int i = 0; i < 8 && !::testing::Test::HasFailure(); ++i, ++calls) {
      SCOPED_TRACE(i);
      const Tensor x = of({1, 0, static_cast<float>(i), 2});
      EXPECT_EQ(valuesOf(f(x)), valuesOf(program.call(plain, x)));
      if (const std::optional<Step> event = program.nextEvent()) {
        for (World* world : {&compiled, &plain}) kActions[event->kind](*world, *event, x);
      }
      if (i % 2 == 0) {
        expectSame(compiled, plain);
      }
    }
    expectSame(compiled, plain);
  }
  EXPECT_LT(runs, calls / 2) << "most calls are replays";
}

}  // namespace
}  // namespace fl::test
