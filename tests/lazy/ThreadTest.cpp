// Threads record into segments of their own and may hand tensors, pending or not, to each other.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"

namespace fl::testing {
namespace {

std::vector<float> iterate(int thread, int steps) {
  Tensor x = arange(Shape({50}), 0) + static_cast<double>(thread);
  for (int i = 0; i < steps; ++i) {
    x = sin(x) * 0.5 + 1.0 / (1.0 + x * x);
    x(i % 50) = static_cast<double>(i);
    if (i % 7 == thread) {
      eval(x);
    }
    if (i % 11 == 0) {
      sum(x).scalar<float>();
    }
  }
  return x.toHostVector<float>();
}

TEST(Threads, RecordAndRealizeAtTheSameTime) {
  constexpr int kThreads = 4, kSteps = 150;
  std::vector<float> expected[kThreads], actual[kThreads];
  {
    const BackendScope scope("eager", "cpu");
    for (int t = 0; t < kThreads; ++t) {
      expected[t] = iterate(t, kSteps);
    }
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] { actual[t] = iterate(t, kSteps); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(actual[t], expected[t]);
  }
}

// A queue of tensors that nobody has realized.
class Channel {
 public:
  void send(Tensor tensor) {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(tensor));
    ready_.notify_one();
  }
  Tensor receive() {
    std::unique_lock<std::mutex> lock(mutex_);
    ready_.wait(lock, [&] { return !queue_.empty(); });
    Tensor tensor = std::move(queue_.front());
    queue_.pop_front();
    return tensor;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Tensor> queue_;
};

TEST(Threads, PassPendingTensors) {
  constexpr int kMessages = 200;
  Channel there, back;
  std::thread worker([&] {
    for (int i = 0; i < kMessages; ++i) {
      Tensor tensor = there.receive() * 2.0;
      if (i % 5 == 0) {
        tensor.toHostVector<float>();
      }
      back.send(tensor + 1.0);
    }
  });
  std::vector<Tensor> sent;
  for (int i = 0; i < kMessages; ++i) {
    Tensor tensor = full({10}, 0.0) + static_cast<double>(i);
    there.send(tensor);
    tensor += 1000.0;  // not seen by the other thread
    sent.push_back(std::move(tensor));
  }
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_EQ(back.receive().toHostVector<float>()[9], 2 * i + 1);
    EXPECT_EQ(sent[i].toHostVector<float>()[0], i + 1000);
  }
  worker.join();
}

TEST(Threads, ReadWhatAnEndedThreadRecorded) {
  Tensor tensor;
  std::thread([&] { tensor = exp(full({4}, 0.0)) + 1.0; }).join();
  EXPECT_EQ(tensor.toHostVector<float>(), std::vector<float>(4, 2));
  Tensor other;
  std::thread([&] { other = exp(full({4}, 0.0)) + 2.0; }).join();
  const Counts counts;
  sync();
  EXPECT_EQ(counts.realizes(), 1u);
  EXPECT_EQ(other.toHostVector<float>(), std::vector<float>(4, 3));
  EXPECT_EQ(counts.realizes(), 1u);
}

// Values die on one thread while another realizes everything that is pending.
TEST(Threads, SyncWhileOthersDropTheirs) {
  std::atomic<bool> stop = false;
  std::thread dropper([&] {
    const Tensor x = full({4}, 1.0);
    while (!stop) {
      Tensor y = exp(x) + 1.0;
      y = y * 2.0;
    }
  });
  const Tensor x = full({4}, 0.0);
  for (int i = 0; i < 2000; ++i) {
    const Tensor y = exp(x) + static_cast<double>(i);
    sync();
    ASSERT_EQ(y.toHostVector<float>()[3], 1 + i);
  }
  stop = true;
  dropper.join();
}

TEST(Threads, ReadOneTensorTogether) {
  for (int round = 0; round < 50; ++round) {
    const Tensor shared = exp(full({100}, 0.0)) + static_cast<double>(round);
    std::atomic<int> right = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] { right += shared.toHostVector<float>()[99] == 1 + round; });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(right, 3);
  }
}

}  // namespace
}  // namespace fl::testing
