// A background compiler that has no memory of the heap, or no thread: kernels stay interpreted, and
// the program goes on.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <vector>

#include "fl/lazy/LazyBackend.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"
#include "tests/lazy/MallocNew.h"

namespace {

// Of all threads but the one that sets it.
std::atomic<bool> fails = false;
thread_local bool sets = false;
std::atomic<int> failures = 0;

}  // namespace

// Out of line, as compilers mistrust a free() that they see for what new made.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  void* block = fails && !sets ? nullptr : std::malloc(std::max<std::size_t>(bytes, 1));
  if (block) return block;
  ++failures;
  throw std::bad_alloc();
}

namespace fl::testing {
namespace {

// A plan of its own for every function.
template <typename Function>
std::vector<float> valuesOf(Function&& function) {
  const Tensor result = function(arange(0, 50, 1, dtype::f32));
  const std::vector<float> values = result.toHostVector<float>();
  waitForCompiler(defaultTensorBackend());
  return values;
}

template <typename Function>
std::vector<float> expected(Function&& function) {
  const BackendScope scope("eager", "cpu");
  const Tensor result = function(arange(0, 50, 1, dtype::f32));
  return result.toHostVector<float>();
}

TEST(CompilerWithoutMemory, LeavesAKernelInterpreted) {
  const auto function = [](const Tensor& x) { return tanh(x) * 3 - x; };
  const auto other = [](const Tensor& x) { return exp(x * -0.5) + x; };
  const std::vector<float> want = expected(function);
  const Counts counts;
  sets = fails = true;
  EXPECT_EQ(valuesOf(function), want);
  fails = false;
  EXPECT_GT(failures, 1) << "of the kernel, and of the words about it";
  EXPECT_EQ(counts.kernelsCompiled(), 0u);
  EXPECT_EQ(valuesOf(function), want);
  EXPECT_EQ(counts.kernelsCompiled(), 0u) << "it is not asked for again";
  EXPECT_EQ(valuesOf(other), expected(other));
  EXPECT_EQ(counts.kernelsCompiled(), 1u);
}

// Sanitizers map memory of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// In a child; exits with 0 if the values are right.
template <typename Function>
[[noreturn]] void computeWithoutThreads(Function&& function, const std::vector<float>& want) {
  const Counts counts;
  rlimit before;
  getrlimit(RLIMIT_AS, &before);
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit now = before;
  now.rlim_cur = pages * getpagesize() + (2 << 20);  // no stack of a thread fits
  setrlimit(RLIMIT_AS, &now);
  const bool isRight = valuesOf(function) == want;
  setrlimit(RLIMIT_AS, &before);
  _exit(isRight && counts.kernelsCompiled() == 0 ? 0 : 1);
}

// Before any thread leaves its stack to the next one: death tests are first.
TEST(CompilerWithoutThreadsDeathTest, LeavesAKernelInterpreted) {
  const auto function = [](const Tensor& x) { return sin(x) * 2 - x; };
  const std::vector<float> want = expected(function);
  EXPECT_EXIT(computeWithoutThreads(function, want), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace fl::testing
