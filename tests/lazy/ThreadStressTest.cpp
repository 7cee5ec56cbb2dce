// Many threads record, realize, compile and free at the same time, and hand each other what is
// pending: everybody gets what eager mode gives.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "fl/lazy/Compile.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

constexpr int kThreads = 16;
constexpr Dim kSize = 40;
#ifdef __SANITIZE_THREAD__
constexpr int kRounds = 4;
#else
constexpr int kRounds = 40;
#endif

// Of operators that `draw` chooses, so that most draws need kernels that no other one has.
Tensor expression(Tensor x, std::mt19937 draw) {
  for (int i = 0; i < 6; ++i) {
    switch (draw() % 7) {
      case 0:
        x = sin(x) + 0.5;
        break;
      case 1:
        x = cos(x) - x * 0.25;
        break;
      case 2:
        x = tanh(x) * 2.0;
        break;
      case 3:
        x = 1.0 / (1.0 + x * x);
        break;
      case 4:
        x = x - mean(x, {0}, true);
        break;
      case 5:
        x = concatenate({x(range(9, kSize)), sort(x(range(0, 9)), 0)}, 0);
        break;
      default:
        x(range(3, 7)) = exp(-x(range(13, 17)));
    }
  }
  return x;
}

Tensor operand(int thread) { return arange({kSize}) * (0.1 + 0.01 * thread); }

std::vector<float> computedEagerly(int thread, const std::mt19937& draw) {
  const BackendScope scope("eager", "cpu");
  return expression(operand(thread), draw).toHostVector<float>();
}

struct Message {
  Tensor tensor = {};  // perhaps pending
  std::vector<float> expected = {};

  void check() const {
    if (expected.empty()) return;  // none was there
    EXPECT_EQ(tensor.toHostVector<float>(), expected);
  }
};

// One a thread.
class Boxes {
 public:
  // Puts a message into a box and takes the one that was there.
  Message exchange(int box, Message message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(boxes_[box], std::move(message));
  }

 private:
  std::mutex mutex_;
  std::array<Message, kThreads> boxes_;
};

// Pending, realized, replayed, or beside one that is dropped.
Tensor computed(int thread, int round, const std::mt19937& draw) {
  if (round % 4 == 0) {
    auto replayed = fl::compile([&](const Tensor& x) { return expression(x, draw); });
    for (int i = 0; i < 3; ++i) replayed(operand(thread));
    return replayed(operand(thread));
  }
  Tensor result = expression(operand(thread), draw);
  if (round % 4 == 1) eval(result);
  if (round % 4 == 2) exp(result);
  return result;
}

void work(int thread, Boxes* boxes) {
  for (int round = 0; round < kRounds; ++round) {
    const std::mt19937 draw(kThreads * round + thread);
    const int neighbour = (thread + 1) % kThreads;
    const Message message{computed(thread, round, draw), computedEagerly(thread, draw)};
    boxes->exchange(neighbour, message).check();
    boxes->exchange(thread, {}).check();
  }
}

// Calls body(0), body(1) ... on threads of their own.
template <class Body>
void onThreads(int count, const Body& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

TEST(ThreadStress, EverybodyGetsWhatEagerModeGives) {
  Boxes boxes;
  const Counts counts;
  onThreads(kThreads, [&](int thread) { work(thread, &boxes); });
  for (int i = 0; i < kThreads; ++i) boxes.exchange(i, {}).check();
  waitForCompiler(defaultTensorBackend());
  EXPECT_GE(counts.plansBuilt(), uint64_t{kThreads * kRounds / 2});
  EXPECT_GE(counts.kernelsCompiled(), uint64_t{kThreads * kRounds / 2});
  EXPECT_EQ(counts.fallbacks(), 0u);
}

TEST(ThreadStress, WhatAllAskForAtOnceIsCompiledOnce) {
  for (int round = 0; round < kRounds; ++round) {
    // A map of this round alone.
    const auto map = [&](int thread) {
      Tensor x = operand(thread);
      for (int bit = 1; bit <= kRounds; bit *= 2) x = round & bit ? floor(x) + 0.3 : x * 0.7;
      return (x / 3.0).toHostVector<float>();
    };
    std::vector<float> expected[kThreads], actual[kThreads];
    for (int thread = 0; thread < kThreads; ++thread) {
      const BackendScope scope("eager", "cpu");
      expected[thread] = map(thread);
    }
    const Counts counts;
    std::barrier start(kThreads);
    onThreads(kThreads, [&](int thread) {
      start.arrive_and_wait();
      actual[thread] = map(thread);
    });
    waitForCompiler(defaultTensorBackend());
    for (int thread = 0; thread < kThreads; ++thread) EXPECT_EQ(actual[thread], expected[thread]);
    EXPECT_EQ(counts.plansBuilt(), 1u);
    EXPECT_EQ(counts.kernelsCompiled(), 1u);
    EXPECT_EQ(counts.fallbacks(), 0u);
  }
}

}  // namespace
}  // namespace fl::testing
