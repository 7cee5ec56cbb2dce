// Memory that cannot be had, at every allocation of a training step: an error that says so, after
// which a smaller batch trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "fl/runtime/SystemMemory.h"
#include "tests/ErrorOf.h"
#include "tests/FlagScope.h"

namespace fl::testing {
namespace {

// Has no memory from the `left`-th allocation on, if that is not negative, nor of `refused` bytes,
// nor for more than `most` in use. What the system has free is what it says.
class Failing final : public runtime::MemoryManager {
 public:
  void* allocate(size_t bytes) override {
    asked += bytes == refused;
    if (left == 0 || bytes == refused || used + bytes > most) {
      throw std::bad_alloc();
    }
    left -= left > 0;
    used += bytes;
    peak = std::max(peak, used);
    return inner_->allocate(bytes);
  }
  void deallocate(void* pointer, size_t bytes) override {
    used -= bytes;
    inner_->deallocate(pointer, bytes);
  }
  void release() override { inner_->release(); }
  MemoryStats stats() const override { return inner_->stats(); }
  size_t freeBytes() const override { return free; }

  long left = -1;
  size_t refused = SIZE_MAX, most = SIZE_MAX, free = size_t{1} << 40;
  size_t used = 0, peak = 0;
  int asked = 0;  // for what is refused

 private:
  const std::unique_ptr<runtime::MemoryManager> inner_ = runtime::makeCachingMemoryManager();
};

class OutOfMemory : public ::testing::TestWithParam<const char*> {
 protected:
  OutOfMemory() : before_(runtime::hostMemoryManager()) {
    runtime::setHostMemoryManager(memory_);
    setSeed(3);
  }
  ~OutOfMemory() override { runtime::setHostMemoryManager(before_); }

  // Of samples of that shape.
  template <typename... Modules>
  void train(const std::vector<Dim>& sample, Modules... modules) {
    sample_ = sample;
    (model_.add(std::move(modules)), ...);
    optimizer_ = std::make_unique<AdamOptimizer>(model_.params(), 1e-3);
  }

  float step(int batch) {
    std::vector<Dim> dims = sample_;
    dims.push_back(batch);
    const Variable x = noGrad(rand(Shape(dims))), y = noGrad(full({batch}, 3, dtype::s32));
    Variable loss = categoricalCrossEntropy(model_(x), y);
    loss.backward();
    optimizer_->step();
    optimizer_->zeroGrad();
    return loss.scalar<float>();
  }

  void expectToldAndSurvived(int small, int large);

  const BackendScope scope_{GetParam(), "cpu"};
  const std::shared_ptr<runtime::MemoryManager> before_;
  const std::shared_ptr<Failing> memory_ = std::make_shared<Failing>();
  std::vector<Dim> sample_;
  Sequential model_;
  std::unique_ptr<AdamOptimizer> optimizer_;
};

INSTANTIATE_TEST_SUITE_P(Backends, OutOfMemory, ::testing::Values("lazy", "eager"),
                         [](const auto& test) { return std::string(test.param); });

// At each allocation of a step of the large batch; one of the small batch trains after it, in
// little more memory than it took before.
void OutOfMemory::expectToldAndSurvived(int small, int large) {
  const float first = step(small);
  for (int i = 0; i < 3; ++i) {
    memory_->peak = 0;
    step(small);
  }
  const size_t most = memory_->peak / 4 * 5;
  step(large);
  const uint64_t before = memory_->stats().allocations;
  step(large);
  const auto allocations = static_cast<long>(memory_->stats().allocations - before);
  ASSERT_GT(allocations, 0);
  for (long i = 0; i < allocations; ++i) {
    SCOPED_TRACE("allocation " + std::to_string(i));
    memory_->left = i;
    const std::string error = test::errorOf<std::bad_alloc>([&] { step(large); });
    memory_->left = -1;
    ASSERT_EQ(error.find("host memory: "), 0u) << error;
    EXPECT_NE(error.find(" bytes cannot be had, at tests/lazy/OutOfMemoryTest.cpp:"),
              std::string::npos)
        << error;
    EXPECT_NE(error.find("\nThey are for "), std::string::npos) << error;
    EXPECT_THAT(error,
                ::testing::ContainsRegex(
                    " free in the system. The largest in use:\n  [0-9]+ bytes of [a-zA-Z0-9 ]+ "
                    "at tests/lazy/OutOfMemoryTest.cpp:[0-9]+"));
    EXPECT_EQ(error.find("at /"), std::string::npos) << error;
    optimizer_->zeroGrad();
    memory_->most = most;
    ASSERT_TRUE(std::isfinite(step(small)));
    memory_->most = SIZE_MAX;
  }
  for (int i = 0; i < 100; ++i) {
    step(small);
  }
  EXPECT_LT(step(small), first);
}

TEST_P(OutOfMemory, E3AtEveryAllocationOfAStepIsToldAndSurvived) {
  train({20}, Linear(20, 64), ReLU(), Linear(64, 10), LogSoftmax());
  expectToldAndSurvived(8, 64);
}

TEST_P(OutOfMemory, E3AtEveryAllocationOfConvolutionsAndAttentionIsToldAndSurvived) {
  train({8, 8, 3}, Conv2D(3, 8, 3, 3, 1, 1, 1, 1), ReLU(), Pool2D(2, 2, 2, 2), View({16, 8, -1}),
        MultiheadAttention(16, 2), View({128, -1}), Linear(128, 10), LogSoftmax());
  expectToldAndSurvived(4, 8);
}

// Parameters, an optimizer's velocities and the statistics of a layer, as if the step that failed
// had never been recorded; by fl::compile, too, whose first calls for a shape record.
TEST_P(OutOfMemory, E3AStepThatFailsIsTakenBack) {
  const auto stateAfter = [&](bool fails, bool compiles) {
    setSeed(5);
    Sequential model;
    model.add(Linear(16, 32));
    model.add(BatchNorm(0, 32));
    model.add(Tanh());
    model.add(Linear(32, 1));
    SGDOptimizer optimizer(model.params(), 0.1, /*momentum=*/0.9);
    std::function<Tensor(const Tensor&)> run = [&](const Tensor& x) {
      optimizer.zeroGrad();
      Variable loss = mean(abs(model(noGrad(x))), {0, 1});
      loss.backward();
      optimizer.step();
      return loss.tensor();
    };
    if (compiles) run = [compiled = compile(run)](const Tensor& x) mutable { return compiled(x); };
    const auto samples = [](int seed, int batch) {
      setSeed(seed);
      const Tensor x = rand({16, batch});
      x.value()->data();  // computes it
      return x;
    };
    run(samples(1, 8)).scalar<float>();
    run(samples(2, 8)).scalar<float>();
    if (fails) {
      const Tensor many = samples(3, 10'000);
      memory_->most = memory_->used + 100'000;
      const std::string error = test::errorOf<std::bad_alloc>([&] { run(many).scalar<float>(); });
      EXPECT_NE(error, "");
      // Six parameters and velocities, two statistics.
      EXPECT_EQ(error.find("\nWhat waits to be computed is not written: 14 tensors have their "
                           "elements from before.") != std::string::npos,
                GetParam() == std::string("lazy"))
          << error;
    }
    EXPECT_TRUE(std::isfinite(run(samples(4, 8)).scalar<float>()));
    memory_->most = SIZE_MAX;
    std::vector<float> state;
    const auto add = [&](const Variable& values) {
      std::ranges::copy(values.tensor().toHostVector<float>(), std::back_inserter(state));
    };
    model.eval();
    add(model(constant(0.5, {16, 4})));
    std::ranges::for_each(model.params(), add);
    return state;
  };
  for (const bool compiles : {false, true}) {
    SCOPED_TRACE(compiles ? "compiled" : "plain");
    EXPECT_EQ(stateAfter(true, compiles), stateAfter(false, compiles));
  }
}

// What is read is not taken back: it is there once there is memory.
TEST_P(OutOfMemory, AReadThatFailsMayBeTriedAgain) {
  Tensor x = full({1000}, 1.0), other = full({1000}, 1.0);
  eval(x);
  sync();
  memory_->left = 0;
  Tensor sum;
  const std::string error = test::errorOf<std::bad_alloc>([&] {
    x += 1.0;
    sum = x + other;
    sum.toHostVector<float>();
  });
  EXPECT_NE(error, "");
  memory_->left = -1;
  EXPECT_EQ(x.toHostVector<float>(), std::vector<float>(1000, 1));
  if (GetParam() == std::string("lazy")) {
    EXPECT_EQ(sum.toHostVector<float>(), std::vector<float>(1000, 3));
  }
}

// A manager is asked again after it released what it kept, and then no more: by a plan of all that
// waits, and by one of what is read alone, which may need less.
TEST_P(OutOfMemory, ABlockIsAskedForTwice) {
  const Tensor x = full({1111}, 1.0);
  for (int i = 0; i < 2; ++i) {
    (x + 1.0).toHostVector<float>();
  }
  memory_->refused = 4444;
  EXPECT_NE(test::errorOf<std::bad_alloc>([&] { (x + 1.0).toHostVector<float>(); }), "");
  EXPECT_EQ(memory_->asked, GetParam() == std::string("lazy") ? 4 : 2);
}

// And not std::make_shared's, which is one place for all modules of a kind.
TEST_P(OutOfMemory, NamesTheLinesThatMadeModulesAndOptimizers) {
  std::vector<std::string> wanted;
  const auto made = [&](const Variable& parameter, int line) {
    parameter.tensor().value()->data();  // computes it
    wanted.push_back(
        "\n  " + std::to_string(parameter.bytes()) +
        " bytes of [a-zA-Z ]+ at tests/lazy/OutOfMemoryTest.cpp:" + std::to_string(line) + "\n");
  };
  const auto first = std::make_shared<Linear>(300, 300);
  made(first->param(0), __LINE__ - 1);
  const auto second = std::make_shared<Linear>(300, 290);
  made(second->param(0), __LINE__ - 1);
  std::vector<std::unique_ptr<UnaryModule>> all;
  all.push_back(std::make_unique<Conv2D>(40, 50, 5, 8));
  made(all[0]->param(0), __LINE__ - 1);
  std::vector<Linear> inside;
  inside.emplace_back(300, 280);
  made(inside[0].param(0), __LINE__ - 1);
  const auto optimizer = std::make_unique<AdamOptimizer>(first->params(), 1e-3);
  made(first->param(0), __LINE__ - 1);
  sync();
  memory_->left = 0;
  const std::string error =
      test::errorOf<std::bad_alloc>([] { (full({10}, 1.0) + 1).toHostVector<float>(); });
  memory_->left = -1;
  for (const std::string& each : wanted) EXPECT_THAT(error, ::testing::ContainsRegex(each));
  EXPECT_EQ(error.find("at /"), std::string::npos) << error;
}

// The ten largest of twelve, and what is asked for.
TEST_P(OutOfMemory, NamesOperatorsAndLinesOfTheTenLargest) {
  std::vector<Tensor> held;
  std::string wanted = "The largest in use:";
  const auto hold = [&](const Tensor& made, const char* op, int line, bool isTold = true) {
    held.push_back(made);
    made.value()->data();  // computes it
    if (!isTold) return;
    wanted += "\n  " + std::to_string(made.bytes()) + " bytes of " + op +
              " at tests/lazy/OutOfMemoryTest.cpp:" + std::to_string(line);
  };
  const auto part = [&](Dim count) { return held[0](range(0, count)); };
  hold(exp(full({500'000}, 0.5)), "exp", __LINE__);
  hold(exp(part(490'000)), "exp", __LINE__);
  hold(sin(part(480'000)), "sin", __LINE__);
  hold(cos(part(470'000)), "cos", __LINE__);
  hold(tanh(part(460'000)), "tanh", __LINE__);
  hold(sqrt(part(450'000)), "sqrt", __LINE__);
  hold(log(part(440'000)), "log", __LINE__);
  hold(erf(part(430'000)), "erf", __LINE__);
  hold(negative(part(420'000)), "negative", __LINE__);
  hold(part(410'000) + part(410'000), "add", __LINE__);
  hold(floor(part(400'000)), "floor", __LINE__, false);
  hold(ceil(part(390'000)), "ceil", __LINE__, false);
  memory_->refused = held[0].bytes();
  const int line = __LINE__ + 1;
  const auto compute = [&] { negative(held[0]).value()->data(); };
  const std::string error = test::errorOf<std::bad_alloc>(compute);
  memory_->refused = SIZE_MAX;
  EXPECT_THAT(error, ::testing::StartsWith("host memory: 2000000 bytes cannot be had"));
  EXPECT_THAT(error,
              ::testing::HasSubstr("\nThey are for negative at tests/lazy/OutOfMemoryTest.cpp:" +
                                   std::to_string(line) + "; "));
  EXPECT_THAT(error, ::testing::HasSubstr(wanted));
  EXPECT_THAT(error, ::testing::Not(::testing::HasSubstr("floor")));
}

// What the system maps, but has not: it would kill the process.
TEST_P(OutOfMemory, WhatCannotBeTouchedIsToldAndSurvived) {
  memory_->free = size_t{200} << 20;
  const auto sumOf = [](Dim count) { return sum(full({count}, 2.0) + 1).scalar<float>(); };
  const std::string error = test::errorOf<std::bad_alloc>([] {
    const Tensor x = full({100'000'000}, 2.0);
    x.value()->data();
  });
  EXPECT_THAT(error, ::testing::StartsWith("host memory: 400000000 bytes cannot be had"));
  EXPECT_THAT(error, ::testing::HasSubstr(" 0 kept for reuse, 209715200 free in the system."));
  EXPECT_EQ(sumOf(1'000'000), 3'000'000);
}

class OutOfMemoryInAPlan : public OutOfMemory {};

INSTANTIATE_TEST_SUITE_P(Backends, OutOfMemoryInAPlan, ::testing::Values("lazy"),
                         [](const auto& test) { return std::string(test.param); });

// The plan of two products, each of which is kept until the last step.
TEST_P(OutOfMemoryInAPlan, NamesItsLargestTemporaries) {
  const Tensor x = rand({128, 128});
  x.toHostVector<float>();  // computes it
  const Tensor pending = [&] {
    const Tensor first = matmul(x, x);
    return matmul(first, matmul(first, x));
  }();
  const auto read = [&] { pending.toHostVector<float>(); };
  memory_->refused = 131072;
  const std::string error = test::errorOf<std::bad_alloc>(read);
  memory_->refused = SIZE_MAX;
  EXPECT_THAT(error, ::testing::StartsWith("host memory: 131072 bytes cannot be had, at "
                                           "tests/lazy/OutOfMemoryTest.cpp:"));
  EXPECT_THAT(error, ::testing::HasSubstr("\nThey are for temporaries of a plan"));
  EXPECT_THAT(error, ::testing::HasSubstr(" free in the system. The largest in use:\n  "));
  EXPECT_THAT(error, ::testing::HasSubstr(
                         "\nThe plan holds up to 196608 bytes: 65536 of results, and 131072 of "
                         "temporaries, of which are the largest alive at once:\n  65536 bytes of "
                         "matmul at tests/lazy/OutOfMemoryTest.cpp:"));
  read();
}

// Two lines of one structure share a plan; each has the memory that it asked for.
// What runs operator by operator, whose values are all in memory, turns to a plan without that.
TEST_P(OutOfMemoryInAPlan, MayTakeLessThanItsOperators) {
  const Tensor x = rand({12345});
  x.scalar<float>();
  const auto total = [&] {
    const Tensor result = sum(sin(x) * 2.0f);  // which alone is held when it is read
    return result.scalar<float>();
  };
  const float expected = total();
  const FlagScope plan(&Flags::plan, "none");
  EXPECT_EQ(total(), expected);
  const uint64_t launches = runtime::counters().kernelLaunches;
  memory_->refused = sizeof(float) * 12345;
  EXPECT_EQ(total(), expected);
  memory_->refused = SIZE_MAX;
  EXPECT_EQ(runtime::counters().kernelLaunches - launches, 1u);
}

TEST_P(OutOfMemoryInAPlan, NamesTheLinesThatRanOutNotThoseThatThePlanWasMadeFor) {
  const Tensor x = rand({4096});
  x.toHostVector<float>();
  const auto computed = [](const Tensor& tensor) { return tensor.toHostVector<float>(), tensor; };
  const Tensor one = computed(x * 2);
  const int lineOfOne = __LINE__ - 1;
  std::vector<Tensor> others;
  for (int i = 0; i < 3; ++i) others.push_back(computed(x * 3));
  const int line = __LINE__ - 1;
  const Tensor product =
      computed(matmul(reshape(x, {64, 64}), matmul(reshape(x, {64, 64}), reshape(x, {64, 64}))));
  const Tensor last =
      matmul(reshape(x, {64, 64}), matmul(reshape(x, {64, 64}), reshape(x, {64, 64})));
  const int lineOfLast = __LINE__ - 1;
  memory_->left = 0;
  const std::string error = test::errorOf<std::bad_alloc>([&] { last.toHostVector<float>(); });
  memory_->left = -1;
  const auto named = [&](int of) {
    const std::string name =
        "bytes of mul at tests/lazy/OutOfMemoryTest.cpp:" + std::to_string(of) + "\n";
    int count = 0;
    for (size_t at = error.find(name); at != std::string::npos; at = error.find(name, at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(named(lineOfOne), 1) << error;
  EXPECT_EQ(named(line), 3) << error;
  EXPECT_THAT(error,
              ::testing::HasSubstr("\nThey are for matmul at tests/lazy/OutOfMemoryTest.cpp:" +
                                   std::to_string(lineOfLast) + ";"));
  EXPECT_THAT(error, ::testing::EndsWith(" bytes of matmul at tests/lazy/OutOfMemoryTest.cpp:" +
                                         std::to_string(lineOfLast)));
  computed(last);
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // these map memory of their own
// The process may map no more than it has and so many megabytes.
class AddressLimit {
 public:
  explicit AddressLimit(size_t megabytes) {
    getrlimit(RLIMIT_AS, &before_);
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<size_t>(getpagesize()) + (megabytes << 20);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_;
};

TEST_P(OutOfMemory, OfAHostCopyIsTold) {
  const Tensor x = full({1 << 22}, 3, dtype::f32);
  x.value()->data();  // computes it
  const auto errorOf = [](auto read) {
    const AddressLimit limit(1);
    return test::errorOf<std::bad_alloc>(read);
  };
  const std::string words =
      ": f32[4194304]: its copy's 16777216 bytes cannot be had, at "
      "tests/lazy/OutOfMemoryTest.cpp:";
  EXPECT_THAT(errorOf([&] { x.toHostVector<float>(); }),
              ::testing::StartsWith("toHostVector" + words));
  EXPECT_THAT(errorOf([&] { x.host<float>(); }), ::testing::StartsWith("host" + words));
  EXPECT_EQ(x.toHostVector<float>().back(), 3);
}

// The stack takes its pages as it grows, and a program that finds none is killed.
[[gnu::noinline]] void growStack() {
  volatile char pages[1 << 18];
  for (volatile char& byte : pages) byte = 0;
}

TEST(OutOfMemoryOfLibraries, IsToldBeforeTheyMakeCode) {
  const BackendScope scope("eager");
  Tensor filter = full({3, 3, 5, 7}, 1, dtype::f32);
  eval(filter);
  enum Exit { kDone = 0, kTold = 3, kOther = 4 };
  std::map<int, int> exits;
  for (size_t megabytes = 0; megabytes <= 30; ++megabytes) {
    const pid_t child = fork();
    if (child == 0) {
      growStack();
      const AddressLimit limit(megabytes);
      try {
        const Tensor images = full({13, 17, 5, 2}, 1, dtype::f32);
        const Tensor result = conv2d(images, filter, 1, 1, 1, 1, 1, 1, 1);
        _exit(result.flat(15).scalar<float>() == 45 ? kDone : kOther);
      } catch (const std::bad_alloc& lack) {
        const bool isWhole =
            std::string(lack.what()).find("The largest in use:\n  ") != std::string::npos;
        _exit(isWhole ? kTold : kOther);
      } catch (...) {
        _exit(kOther);
      }
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << megabytes << " MB: signal " << WTERMSIG(status);
    ++exits[WEXITSTATUS(status)];
  }
  EXPECT_GT(exits[kDone], 0);
  EXPECT_GT(exits[kTold], 0);
  EXPECT_EQ(exits[kDone] + exits[kTold], 31);
}

TEST(MappableMemory, IsWhatTheLimitLeaves) {
  EXPECT_GT(runtime::mappableMemory(), size_t{1} << 40);
  const AddressLimit limit(100);
  EXPECT_LE(runtime::mappableMemory(), size_t{100} << 20);
  EXPECT_GE(runtime::mappableMemory(), size_t{50} << 20);
}
#endif

}  // namespace
}  // namespace fl::testing
