// Memory that cannot be had, at every allocation of a training step: an error that says so, after
// which a smaller batch trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "fl/fl.h"
#include "tests/ErrorOf.h"

namespace fl::testing {
namespace {

// Has no memory from the `left`-th allocation on, if that is not negative, nor of `refused` bytes.
class Failing final : public runtime::MemoryManager {
 public:
  void* allocate(size_t bytes) override {
    if (left == 0 || bytes == refused) {
      throw std::bad_alloc();
    }
    left -= left > 0;
    return inner_->allocate(bytes);
  }
  void deallocate(void* pointer, size_t bytes) override { inner_->deallocate(pointer, bytes); }
  void release() override { inner_->release(); }
  MemoryStats stats() const override { return inner_->stats(); }

  long left = -1;
  size_t refused = 0;

 private:
  const std::unique_ptr<runtime::MemoryManager> inner_ = runtime::makeCachingMemoryManager();
};

class OutOfMemory : public ::testing::TestWithParam<const char*> {
 protected:
  OutOfMemory() : before_(runtime::hostMemoryManager()) {
    runtime::setHostMemoryManager(memory_);
    setSeed(3);
    model_.add(Linear(20, 64));
    model_.add(ReLU());
    model_.add(Linear(64, 10));
    model_.add(LogSoftmax());
    optimizer_ = std::make_unique<AdamOptimizer>(model_.params(), 1e-3);
  }
  ~OutOfMemory() override { runtime::setHostMemoryManager(before_); }

  float step(int batch) {
    const Variable x = noGrad(rand({20, batch})), y = noGrad(full({batch}, 3, dtype::s32));
    Variable loss = categoricalCrossEntropy(model_(x), y);
    loss.backward();
    optimizer_->step();
    optimizer_->zeroGrad();
    return loss.scalar<float>();
  }

  const BackendScope scope_{GetParam(), "cpu"};
  const std::shared_ptr<runtime::MemoryManager> before_;
  const std::shared_ptr<Failing> memory_ = std::make_shared<Failing>();
  Sequential model_;
  std::unique_ptr<AdamOptimizer> optimizer_;
};

INSTANTIATE_TEST_SUITE_P(Backends, OutOfMemory, ::testing::Values("lazy", "eager"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(OutOfMemory, E3AtEveryAllocationOfAStepIsToldAndSurvived) {
  const float first = step(8);
  step(64);
  const uint64_t before = memory_->stats().allocations;
  step(64);
  const auto allocations = static_cast<long>(memory_->stats().allocations - before);
  ASSERT_GT(allocations, 0);
  for (long i = 0; i < allocations; ++i) {
    SCOPED_TRACE("allocation " + std::to_string(i));
    memory_->left = i;
    const std::string error = test::errorOf<std::bad_alloc>([&] { step(64); });
    memory_->left = -1;
    ASSERT_EQ(error.find("host memory: "), 0u) << error;
    EXPECT_NE(error.find(" bytes cannot be had, at tests/lazy/OutOfMemoryTest.cpp:"),
              std::string::npos)
        << error;
    EXPECT_NE(error.find("\nThey are for "), std::string::npos) << error;
    EXPECT_THAT(error, ::testing::ContainsRegex(
                           " free in the system. The largest in use:\n  [0-9]+ bytes of [a-zA-Z ]+ "
                           "at [^ ]+:[0-9]+"));
    optimizer_->zeroGrad();
    ASSERT_TRUE(std::isfinite(step(8)));
  }
  for (int i = 0; i < 100; ++i) {
    step(8);
  }
  EXPECT_LT(step(8), first);
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
  memory_->refused = 0;
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
        "bytes of map mul at tests/lazy/OutOfMemoryTest.cpp:" + std::to_string(of) + "\n";
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
// The process may map no more than it has and a megabyte.
class AddressLimit {
 public:
  AddressLimit() {
    getrlimit(RLIMIT_AS, &before_);
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<size_t>(getpagesize()) + (1 << 20);
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
    const AddressLimit limit;
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
#endif

}  // namespace
}  // namespace fl::testing
