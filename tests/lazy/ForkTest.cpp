// A child of fork() computes: with threads of its own, whatever those of its parent were doing.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fl/base/Flags.h"
#include "fl/host/ThreadPool.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/FreshEngine.h"

namespace fl::testing {
namespace {

int threadsOfThisProcess() {
  int count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

// Large enough for the pool, and a kernel of its own for every `chain`.
Tensor chained(int chain, Dim size) {
  Tensor x = full({size}, 0.5f);
  for (int i = 0; i <= chain; ++i) {
    x = i % 2 == 0 ? sin(x) : x * 2 + 1;
  }
  return x;
}

float compute(int chain) { return sum(chained(chain, 1 << 18)).scalar<float>(); }

float expected(int chain) {
  const BackendScope scope("eager", "cpu");
  return compute(chain);
}

// Runs `body` in a child, which has a minute; true if it returned true.
template <typename Body>
bool runInChild(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    bool isRight = false;
    try {
      isRight = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    _exit(isRight ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Calls `body(0)`, `body(1)` ... on another thread.
class Meanwhile {
 public:
  template <typename Body>
  explicit Meanwhile(Body body)
      : thread_([this, body] {
          for (int i = 0; !stop_; ++i) body(i);
        }) {}
  ~Meanwhile() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST(Fork, BeforeAnythingHasRun) {
  EXPECT_EQ(threadsOfThisProcess(), 1) << "threads start with the first work";
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(runInChild([&] { return compute(i) == expected(i); })) << i;
  }
  EXPECT_EQ(threadsOfThisProcess(), 1);
}

// Half as many as compute; each kernel is compiled once, and all are there.
TEST(Fork, WhileSeveralThreadsCompile) {
  host::setNumThreads(8);
  compute(1);
  const int before = threadsOfThisProcess();  // of which one compiles
  std::vector<Tensor> several;
  for (int i = 0; i < 6; ++i) several.push_back(chained(2 + i, 1000 + i));
  sync();
  EXPECT_EQ(threadsOfThisProcess(), before + 3);
  EXPECT_TRUE(runInChild([&] {
    const bool isRight = compute(10) == expected(10);
    waitForCompiler(defaultTensorBackend());
    return isRight;
  }));
  waitForCompiler(defaultTensorBackend());
  const uint64_t compiled = runtime::counters().kernelsCompiled;
  for (int i = 0; i < 6; ++i) several[i] = chained(2 + i, 1000 + i);
  sync();
  waitForCompiler(defaultTensorBackend());
  EXPECT_EQ(runtime::counters().kernelsCompiled, compiled);
}

TEST(Fork, AfterUse) {
  host::setNumThreads(3);
  for (int i = 0; i < 8; ++i) {
    // Left pending and being compiled in the parent.
    const Tensor pending = full({1000}, 2.0f) * 3;
    const float value = compute(20 + i);
    EXPECT_EQ(value, expected(20 + i));
    EXPECT_TRUE(runInChild([&] {
      const bool isRight = compute(20 + i) == value && compute(40 + i) == expected(40 + i) &&
                           sum(pending).scalar<float>() == 6000;
      waitForCompiler(defaultTensorBackend());
      return isRight && host::getNumThreads() == 3 && threadsOfThisProcess() > 1;
    })) << i;
    EXPECT_EQ(compute(60 + i), expected(60 + i)) << "in the parent";
  }
}

TEST(Fork, WhileOthersCompute) {
  const Meanwhile others([](int i) { compute(80 + i % 5); });
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(runInChild([&] { return compute(90 + i) == expected(90 + i); })) << i;
  }
}

// Of a length that nobody has computed before.
float sumOfTwice(int length) {
  const Tensor x = full({length}, 1.0f);
  return sum(x + x).scalar<float>();
}

TEST(Fork, WhileOthersComputeEagerly) {
  const BackendScope scope("eager", "cpu");
  const Meanwhile others([](int i) {
    const BackendScope scope("eager", "cpu");
    sumOfTwice(1000 + i);
  });
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(runInChild([&] { return sumOfTwice(1 + i) == 2 * (1 + i); })) << i;
  }
}

float product(int rows) {
  return sum(matmul(full({rows, 8}, 1.0f), full({8, 8}, 1.0f))).scalar<float>();
}

TEST(Fork, WhileOthersMultiply) {
  for (const char* backend : {"eager", "lazy"}) {
    const BackendScope scope(backend, "cpu");
    const Meanwhile others([&](int i) {
      const BackendScope scope(backend, "cpu");
      product(1000 + i);
    });
    for (int i = 0; i < 100; ++i) {
      const int rows = 1 + i + (backend[0] == 'l') * 100;
      ASSERT_TRUE(runInChild([&] { return product(rows) == rows * 64; })) << backend << i;
    }
  }
}

TEST(Fork, WhileOthersTakeMemory) {
  const Meanwhile others([](int) { runtime::makeBlock(nullptr, 64); });
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(runInChild([] { return runtime::makeBlock(nullptr, 64) != nullptr; })) << i;
  }
}

// Names of modules are numbered, errors look lines up, and backends are looked up.
bool tellsErrors() {
  const BackendScope scope("eager", "cpu");
  const ModuleScope module("module");
  try {
    full({3}, 1.0f) + full({4}, 1.0f);
  } catch (const std::invalid_argument& error) {
    return std::string(error.what()).find("ForkTest.cpp") != std::string::npos;
  }
  return false;
}

TEST(Fork, WhileOthersTellErrors) {
  const Meanwhile others([](int) { tellsErrors(); });
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(runInChild(tellsErrors)) << i;
}

TEST(Fork, WhileOthersChooseBackends) {
  const Meanwhile others([](int) {
    for (int i = 0; i < 1000; ++i) const BackendScope scope("eager", "cpu");
  });
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(runInChild([] {
      const BackendScope scope("eager", "cpu");
      const ModuleScope module("module");
      return true;
    })) << i;
  }
}

// A child has no thread but its own at first.
TEST(OneThread, CompilesWhatItRuns) {
  EXPECT_TRUE(runInChild([] {
    runtime::hostMemoryManager()->release();
    host::setNumThreads(1);
    flags().cache = "off";
    const FreshEngine engine;
    const uint64_t before = runtime::counters().kernelsCompiled;
    const std::vector<float> values = (tanh(full({100}, 0.0f)) + 3).toHostVector<float>();
    // The values of full(), and the rest.
    const bool isCompiled = runtime::counters().kernelsCompiled == before + 2;
    return isCompiled && threadsOfThisProcess() == 1 && values == std::vector<float>(100, 3);
  }));
}

// Of ours and of the libraries that are called; what is kept of freed memory needs none either.
TEST(OneThread, IsAllThereIs) {
  EXPECT_TRUE(runInChild([] {
    runtime::hostMemoryManager()->release();
    flags().jit = "sync";
    const FreshEngine engine;
    const auto threadsAfterWork = [](int threads) {
      host::setNumThreads(threads);
      const Tensor x = full({256, 256}, 0.5f);
      sum(exp(matmul(x, x) * 1e-6)).scalar<float>();
      return threadsOfThisProcess();
    };
    return threadsAfterWork(3) == 3 && threadsAfterWork(1) == 1;
  }));
}

// The one of a backend may compute with another while a thread forks.
TEST(Fork, WhileABackendIsMade) {
  std::atomic<bool> hasBegun = false;
  registerBackend("computing", [&](const std::string& device) {
    hasBegun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until main is in fork()
    const BackendScope scope("eager", "cpu");
    compute(1);
    return makeLazyBackend(device);
  });
  std::thread maker([] { getBackend("computing", "cpu"); });
  while (!hasBegun) std::this_thread::yield();
  EXPECT_TRUE(
      runInChild([] { return &getBackend("eager", "cpu") != &getBackend("computing", "cpu"); }));
  maker.join();
}

// What is computed inside a loop of the pool may fork, too.
TEST(Fork, InsideALoop) {
  std::atomic<int> right = 0;
  host::threadPool().parallelFor(2, 1, [&](int64_t, int64_t) {
    right += runInChild([] {
      int64_t covered = 0;
      host::threadPool().parallelFor(10, 1,
                                     [&](int64_t begin, int64_t end) { covered += end - begin; });
      return covered == 10;
    });
  });
  EXPECT_EQ(right, 2);
}

}  // namespace
}  // namespace fl::testing
