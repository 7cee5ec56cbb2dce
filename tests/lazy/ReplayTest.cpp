// A replayed plan never writes what an earlier run returned. The programs are those that other
// systems get wrong: tinygrad issues 7020, 7637, 13364, 14689 and 16571.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

// 7020: two results of one function are two values.
TEST(Replay, ResultsOfOneFunctionAreTheirOwn) {
  auto f = [](const Tensor& x) {
    Tensor y = x + 1.0;
    y.toHostVector<float>();
    return y;
  };
  const Tensor a = Tensor::fromVector(std::vector<float>{1.1f});
  const Tensor b = Tensor::fromVector(std::vector<float>{1.2f});
  const Counts counts;
  const Tensor fa = f(a), fb = f(b);
  EXPECT_EQ(counts.plansBuilt(), 1u);
  EXPECT_EQ((fa == fb).scalar<char>(), 0);
  EXPECT_EQ(fa.scalar<float>(), 1.1f + 1);
  EXPECT_EQ(fb.scalar<float>(), 1.2f + 1);
}

// 7637: a result that is kept or dropped makes no difference to the others.
TEST(Replay, KeepingAResultChangesNothing) {
  const Tensor a = Tensor::fromVector(std::vector<int>{1, 2, 3});
  const Tensor b = Tensor::fromVector(std::vector<int>{4, 5, 6});
  const Counts dropped;
  for (int i = 0; i < 5; ++i) {
    a + b;
  }
  sync();
  EXPECT_EQ(dropped.realizes(), 0u) << "nobody can see the values";
  std::vector<Tensor> kept;
  for (int i = 0; i < 5; ++i) {
    kept.push_back(a + b);
    eval(kept.back());
  }
  for (const Tensor& c : kept) {
    EXPECT_EQ(c.toHostVector<int>(), (std::vector<int>{5, 7, 9}));
  }
  EXPECT_EQ(dropped.plansBuilt(), 1u);
}

// 13364: a state that is updated in place and also returned.
TEST(Replay, ReturnedStateIsASnapshot) {
  Tensor state = full({100}, 0.0);
  state(0) = 5;
  std::vector<Tensor> snapshots, views, derived;
  for (int step = 0; step < 20; ++step) {
    state += 1.0;
    state(1) = static_cast<double>(step * 100);
    snapshots.push_back(state);
    views.push_back(state(range(0, 2)).copy());
    derived.push_back(state * 2.0);
    eval(state);
    if (step % 3 == 0) {
      state.toHostVector<float>();
    }
  }
  for (int step = 0; step < 20; ++step) {
    const auto snapshot = snapshots[step].toHostVector<float>();
    EXPECT_EQ(snapshot[0], 6 + step);
    EXPECT_EQ(snapshot[1], step * 100);
    EXPECT_EQ(snapshot[99], 1 + step);
    EXPECT_EQ(views[step].toHostVector<float>(), (std::vector<float>{6.0f + step, 100.0f * step}));
    EXPECT_EQ(derived[step].toHostVector<float>()[1], step * 200);
  }
}

// 14689: a large buffer shifted through itself by slice and concatenation.
TEST(Replay, ShiftsALargeBuffer) {
  constexpr Dim kSize = 1 << 20;
  Tensor buffer = full({kSize}, 0);
  for (int i = 0; i < 10; ++i) {
    buffer = concatenate({buffer(range(kSize / 2, kSize)), full({kSize / 2}, i + 1)}, 0);
    const auto values = buffer.toHostVector<int>();
    ASSERT_EQ(std::count(values.begin(), values.begin() + kSize / 2, i), kSize / 2);
    ASSERT_EQ(std::count(values.begin() + kSize / 2, values.end(), i + 1), kSize / 2);
  }
}

// The same in place: the source overlaps what is written.
TEST(Replay, ShiftsInPlace) {
  constexpr Dim kSize = 1 << 16;
  Tensor buffer = arange(Shape({kSize}), 0, dtype::s32);
  for (int i = 1; i <= 3; ++i) {
    buffer(range(0, kSize - 1)) = buffer(range(1, kSize));
    const auto values = buffer.toHostVector<int>();
    for (Dim k = 0; k < kSize; ++k) {
      ASSERT_EQ(values[k], std::min<Dim>(k + i, kSize - 1));
    }
  }
}

// 16571: gradients that a step records and nobody reads before the next steps have run.
TEST(Replay, PendingGradientsOutliveTheStep) {
  const Tensor image = arange(Shape({8, 6}), 0) + 1.0;
  Tensor weight = full({8, 6}, 1.0);
  std::vector<Tensor> gradients, losses;
  for (int step = 0; step < 6; ++step) {
    const Tensor strided = transpose(image)(range(0, 6, 2)).copy();  // needs a copy of its own
    const Tensor scaled = transpose(strided * strided);
    Tensor gradient = sum(scaled, {1}, true) * weight;
    losses.push_back(sum(gradient));
    gradients.push_back(gradient);
    weight -= 0.5 * weight;
    eval(weight);
    losses[step / 2].scalar<float>();
  }
  for (int step = 0; step < 6; ++step) {
    const auto gradient = gradients[step].toHostVector<float>();
    for (int k = 0; k < 48; ++k) {
      const float pixel = static_cast<float>(k % 8 + 1);
      EXPECT_EQ(gradient[k], 3 * pixel * pixel * std::pow(0.5f, step));
    }
  }
}

// Results that share a buffer with an input, or with one another, when that input is updated.
TEST(Replay, ResultsThatAliasInputsAreValues) {
  Tensor x = arange(Shape({6}), 0);
  x.scalar<float>();
  std::vector<Tensor> same, shaped, flat, moved;
  for (int step = 0; step < 6; ++step) {
    same.push_back(x);
    shaped.push_back(reshape(x, {2, 3}));
    flat.push_back(shaped.back().flatten());
    moved.push_back(x * 1.0);
    x += 10.0;
    x(0) = -1.0;
    if (step % 2 == 1) {
      x.scalar<float>();
    }
  }
  for (int step = 0; step < 6; ++step) {
    const float more = 10.0f * static_cast<float>(step);
    const std::vector<float> expected = {
        step == 0 ? 0 : -1.0f, 1 + more, 2 + more, 3 + more, 4 + more, 5 + more};
    for (const auto* results : {&same, &shaped, &flat, &moved}) {
      EXPECT_EQ((*results)[step].toHostVector<float>(), expected) << "step " << step;
    }
  }
}

// Each takes the other's buffer, whether one plan does it or one a step.
TEST(Replay, TwoTensorsSwap) {
  for (const int readEvery : {1, 2, 100}) {
    Tensor a = full({64}, 1.0), b = full({64}, 2.0);
    for (int step = 1; step <= 7; ++step) {
      std::swap(a, b);
      a = a + 10.0;
      Tensor old = a;
      a = b + 0.5;
      b = old;
      if (step % readEvery == 0) {
        eval(a);
        a.scalar<float>();
      }
    }
    // (a, b) becomes (a + 0.5, b + 10).
    EXPECT_EQ(a.toHostVector<float>(), std::vector<float>(64, 4.5)) << readEvery;
    EXPECT_EQ(b.toHostVector<float>(), std::vector<float>(64, 72)) << readEvery;
  }
}

// A tensor that becomes a view of itself, while earlier ones are kept.
TEST(Replay, ATensorTakesAViewOfItself) {
  constexpr Dim kSize = 32;
  for (const bool reads : {true, false}) {
    Tensor x = arange(Shape({kSize}), 0);
    std::vector<Tensor> kept;
    for (int step = 0; step < 5; ++step) {
      kept.push_back(x);
      x = x(range(1, x.dim(0)));
      x(0) += 100.0;
      if (reads) {
        x.scalar<float>();
      }
    }
    kept.push_back(x);
    for (int step = 0; step <= 5; ++step) {
      std::vector<float> expected;
      for (Dim i = step; i < kSize; ++i) {
        expected.push_back(static_cast<float>(i + (i == step && step > 0 ? 100 : 0)));
      }
      EXPECT_EQ(kept[step].toHostVector<float>(), expected) << "step " << step;
    }
  }
}

// Outputs of step k, compared after step k + 1 has run the same plan.
TEST(Replay, OutputsStayWhatTheyWere) {
  Tensor w = rand({64, 32}), velocity = full({64, 32}, 0.0);
  std::vector<Tensor> tensors;
  std::vector<std::vector<float>> values;
  Counts counts;
  for (int step = 0; step < 12; ++step) {
    const Tensor gradient = tanh(w) - 0.5;
    velocity = 0.9 * velocity + gradient;
    w -= 0.1 * velocity;
    for (const Tensor& tensor : {w, velocity, gradient}) {
      tensors.push_back(tensor);
      values.push_back(tensor.toHostVector<float>());
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      ASSERT_EQ(tensors[i].toHostVector<float>(), values[i]) << "step " << step;
    }
    if (step == 2) {
      counts = Counts();
    }
  }
  EXPECT_EQ(counts.plansBuilt(), 0u);
}

}  // namespace
}  // namespace fl::testing
