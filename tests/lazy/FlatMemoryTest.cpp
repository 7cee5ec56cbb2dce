// Programs that never ask for a value: memory stays flat and plans stay few, with the limits of the
// automatic flush that users get.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/tensor.h"
#include "tests/ResidentMemory.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

constexpr size_t kMebibyte = 1 << 20;

// The highest of what it looked at.
class Watermark {
 public:
  void look() {
    live_ = std::max(live_, runtime::hostMemoryManager()->stats().liveBytes);
    resident_ = std::max(resident_, residentBytes());
  }
  size_t live() const { return live_; }
  size_t resident() const { return resident_; }

 private:
  size_t live_ = 0, resident_ = 0;
};

// Looks at memory every so often in `step`, called `count` times: what the second half of the steps
// needs at most is what the first half needed.
template <typename Step>
void expectFlat(int count, Step&& step) {
  Watermark early, late;
  for (int i = 0; i < count; ++i) {
    step(i);
    if (i % 16 == 0) {
      (i < count / 2 ? early : late).look();
    }
  }
  std::cout << "live " << early.live() << " then " << late.live() << " B, resident "
            << early.resident() / kMebibyte << " then " << late.resident() / kMebibyte << " MiB\n";
  EXPECT_LE(late.live(), early.live() + early.live() / 10);
#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // these keep books of their own
  EXPECT_LE(late.resident(), early.resident() + early.resident() / 10);
#endif
}

// The derivative by central differences of a forward pass, an element at a time.
TEST(FlatMemory, GradientCheckThatReadsNothing) {
  constexpr int kSize = 64, kSteps = 30000;
  std::vector<float> values(kSize);
  for (int i = 0; i < kSize; ++i) {
    values[i] = 0.02f * static_cast<float>(i) - 0.5f;
  }
  Tensor x = Tensor::fromVector(values).astype(dtype::f64);
  Tensor gradient = full({kSize}, 0.0, dtype::f64);
  const double step = 1e-4;
  const auto forward = [&] { return sum(tanh(x) * x + exp(x)); };
  const Counts counts;
  expectFlat(kSteps, [&](int i) {
    const int at = i % kSize;
    const Tensor value = x.flat(at).copy();
    x.flat(at) = value + step;
    const Tensor up = forward();
    x.flat(at) = value - step;
    const Tensor down = forward();
    x.flat(at) = value;
    gradient.flat(at) = (up - down) / (2 * step);
  });
  const auto got = gradient.toHostVector<double>();
  for (int i = 0; i < kSize; ++i) {
    const double v = values[i], t = std::tanh(v);
    EXPECT_NEAR(got[i], t + v * (1 - t * t) + std::exp(v), 1e-6) << i;
  }
  EXPECT_LE(counts.plansBuilt(), 5u);
  EXPECT_EQ(counts.fallbacks(), 0u);
}

TEST(FlatMemory, GradientCheckWithNumbers) {
  constexpr int kSize = 64, kSteps = 30000;
  Tensor x = full({kSize}, 0.5), gradient = full({kSize}, 0.0);
  const Counts counts;
  expectFlat(kSteps, [&](int i) {
    const int at = i % kSize;
    x.flat(at) = 0.5 + 1e-2;
    const Tensor up = sum(x * x);
    x.flat(at) = 0.5 - 1e-2;
    const Tensor down = sum(x * x);
    x.flat(at) = 0.5;
    gradient.flat(at) = (up - down) / 2e-2;
  });
  for (float each : gradient.toHostVector<float>()) {
    EXPECT_NEAR(each, 1, 1e-3);
  }
  EXPECT_LE(counts.plansBuilt(), 5u);
}

// A million operators, of a loop with several and of a chain of one.
// A loop over batches whose loss is read at the end: eager mode frees a batch when the next one
// comes.
TEST(FlatMemory, BatchesThatAreLetGoOf) {
  constexpr int kSteps = 60;
  constexpr Dim kBatch = 1 << 20;
  constexpr size_t kBytes = kBatch * sizeof(float), kMostDropped = 32 * kMebibyte;
  const size_t before = runtime::hostMemoryManager()->stats().liveBytes;
  Tensor weight = full({1}, 1.0), total = full({1}, 0.0);
  Watermark memory;
  const Counts counts;
  for (int i = 0; i < kSteps; ++i) {
    const Tensor batch = Tensor::fromVector(std::vector<float>(kBatch, 1.0f));
    const Tensor loss = mean(batch * weight, {0}, /*keepDims=*/true);
    weight += 1;
    total += loss;
    if (i > kSteps / 2) memory.look();  // once the loop's place is known
  }
  EXPECT_EQ(total.scalar<float>(), kSteps * (kSteps + 1) / 2);
  EXPECT_LE(memory.live(), before + kMostDropped + 3 * kBytes);
  EXPECT_GE(memory.live(), before + kMostDropped - kBytes);  // as many as may be are one plan
  EXPECT_LE(counts.plansBuilt(), 3u);
}

TEST(FlatMemory, AMillionOperators) {
  for (int operators : {1, 5}) {
    Tensor x = full({1000}, 0.5);
    const Counts counts;
    expectFlat(1'000'000 / operators, [&](int) {
      if (operators == 1) {
        x = x + 1.0;
      } else {
        const Tensor y = exp(x * 0.5);
        x = sin(y) + x * 0.25;
      }
    });
    EXPECT_EQ(x.toHostVector<float>().size(), 1000u);
    EXPECT_LE(counts.plansBuilt(), 3u);
    EXPECT_GE(counts.realizes(), 10u);
    EXPECT_EQ(counts.fallbacks(), 0u);
  }
}

// Each batch on a thread of its own, which ends with it.
TEST(FlatMemory, ThreadsThatEndReadNothing) {
  constexpr int kThreads = 400, kElements = 1 << 18;
  Tensor total = full({1}, 0.0);
  expectFlat(kThreads, [&](int) {
    std::thread([&] {
      const Tensor batch = Tensor::fromVector(std::vector<float>(kElements, 1.0f));
      total = total + sum(batch, {0}, true);
    }).join();
  });
  EXPECT_EQ(total(0).scalar<float>(), static_cast<float>(kThreads) * kElements);
}

}  // namespace
}  // namespace fl::testing
