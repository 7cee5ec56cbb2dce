// Recording: what becomes a plan, what is an argument, when something runs. Kernels are compiled
// before they run (FL_JIT=sync), so that the counters are exact.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/base/Flags.h"
#include "fl/host/ThreadPool.h"
#include "fl/lazy/LazyBackend.h"
#include "fl/tensor/tensor.h"
#include "tests/ErrorOf.h"
#include "tests/fuzz/RandomProgram.h"
#include "tests/lazy/Counts.h"
#include "tests/lazy/FreshEngine.h"

namespace fl::testing {
namespace {

Tensor numbers(Dim count) { return Tensor::fromVector(std::vector<float>(count, 0.5f)); }

// ---- Segments ----

TEST(Segments, RecordingRunsNothing) {
  const Tensor x = numbers(8);
  const Counts counts;
  Tensor y = exp(x) + x;
  y(0) = 3;
  eval(y);
  EXPECT_EQ(counts.realizes(), 0u);
  EXPECT_EQ(counts.launches(), 0u);
  EXPECT_EQ(y.toHostVector<float>()[0], 3);
  EXPECT_EQ(counts.realizes(), 1u);
}

TEST(Segments, EvalSeparatesPlans) {
  const Tensor x = numbers(8);
  const Counts counts;
  Tensor a = exp(x);
  eval(a);
  Tensor b = a * 2.0;
  eval(b);
  eval(b);
  Tensor c = sum(b);
  EXPECT_NEAR(c.scalar<float>(), 8 * 2 * std::exp(0.5), 1e-4);
  EXPECT_EQ(counts.realizes(), 3u);
  EXPECT_EQ(counts.plansBuilt(), 3u);
  EXPECT_NEAR(a.toHostVector<float>()[7], std::exp(0.5), 1e-6);
  EXPECT_EQ(counts.realizes(), 3u) << "a was realized with its segment";
}

// A step whose loss is read between forward and update: two plans, whatever the number of steps.
TEST(Segments, LoopsReuseTheirPlans) {
  Tensor weight = numbers(100);
  auto step = [&] {
    const Tensor loss = sum(weight * weight);
    const float read = loss.scalar<float>();
    weight -= weight * 0.25;
    eval(weight);
    return read;
  };
  step();
  step();
  const Counts counts;
  double expected = 100 * 0.25 * std::pow(0.75, 4);
  for (int i = 0; i < 10; ++i, expected *= 0.5625) {
    EXPECT_NEAR(step(), expected, expected * 1e-4);
  }
  EXPECT_EQ(counts.plansBuilt(), 0u);
  EXPECT_EQ(counts.kernelsCompiled(), 0u);
}

TEST(Segments, ShapesAndLiveResultsMakePlans) {
  auto run = [](Dim size, bool keep) {
    const Tensor middle = exp(numbers(size)), end = log(middle);
    const Tensor kept = keep ? middle : Tensor();
    return std::pair(end.toHostVector<float>()[0], kept);
  };
  run(8, true);
  const Counts counts;
  run(8, true);
  EXPECT_EQ(counts.plansBuilt(), 0u);
  run(9, true);
  EXPECT_EQ(counts.plansBuilt(), 1u) << "another shape";
  EXPECT_EQ(counts.kernelsCompiled(), 0u) << "extents are arguments of kernels";
}

// What no handle refers to when the segment runs is never written.
TEST(Segments, DroppedValuesAreNotStored) {
  const Tensor x = numbers(1 << 12);
  Tensor y = exp(sin(x));
  y.toHostVector<float>();
  runtime::Counters& counters = runtime::counters();
  const uint64_t before = counters.bytesMoved;
  y = exp(sin(x));
  y.toHostVector<float>();
  EXPECT_EQ(counters.bytesMoved - before, 2u << 14);
}

// ---- Numbers are arguments ----

TEST(Numbers, NeverEnterAPlan) {
  const Tensor x = numbers(8);
  auto run = [&](double a, double b, Dim start) {
    Tensor y = (x + a) * b;
    y(range(start, start + 2)) = a;
    y += full({8}, b);
    return y.toHostVector<float>();
  };
  run(1, 1, 0);
  const Counts counts;
  for (int i = 0; i < 50; ++i) {
    const double a = i % 3, b = i % 5;  // 0, 1 and equal ones among them
    const Dim start = i % 7;
    const auto y = run(a, b, start);
    for (Dim k = 0; k < 8; ++k) {
      const bool written = k == start || k == start + 1;
      EXPECT_EQ(y[k], static_cast<float>((written ? a : (0.5 + a) * b) + b));
    }
  }
  EXPECT_EQ(counts.plansBuilt(), 0u);
  EXPECT_EQ(counts.kernelsCompiled(), 0u);
}

TEST(Numbers, RandomOffsetsAreArguments) {
  auto draw = [] { return sum(rand({64})).scalar<float>(); };
  setSeed(3);
  const float first = draw();
  const Counts counts;
  EXPECT_NE(draw(), first);
  setSeed(3);
  EXPECT_EQ(draw(), first);
  EXPECT_EQ(counts.plansBuilt(), 0u);
}

// A mask drawn anew in each of 1,000 steps is one plan and one kernel.
TEST(Numbers, AThousandRandomStepsCompileOnce) {
  const Tensor x = numbers(1001);
  const Counts counts;
  double dropped = 0;
  for (int step = 0; step < 1000; ++step) {
    const Tensor kept = where(rand({1001}) < 0.25, full({1001}, 0.0), x);
    const auto values = kept.toHostVector<float>();
    dropped += static_cast<double>(std::count(values.begin(), values.end(), 0.0f));
  }
  EXPECT_NEAR(dropped / 1001 / 1000, 0.25, 0.002);
  EXPECT_EQ(counts.plansBuilt(), 1u);
  EXPECT_EQ(counts.kernelsCompiled(), 1u);
}

// 1,000 steps with warm-up and cosine decay, the loss logged each step.
TEST(Numbers, AdamWithASchedule) {
  constexpr int kSteps = 1000, kSize = 16;
  const double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  Tensor w = Tensor::fromVector(std::vector<float>(kSize, 1.0f));
  Tensor m = full({kSize}, 0.0), v = full({kSize}, 0.0);
  double rw = 1, rm = 0, rv = 0;  // every element is the same number
  Counts counts;
  for (int step = 1; step <= kSteps; ++step) {
    const double rate =
        step <= 100 ? 0.01 * step / 100 : 0.005 * (1 + std::cos(M_PI * (step - 100) / 900));
    const Tensor loss = mean((w - 0.25) * (w - 0.25));
    const Tensor gradient = 2.0 * (w - 0.25);
    m = beta1 * m + (1 - beta1) * gradient;
    v = beta2 * v + (1 - beta2) * gradient * gradient;
    const double correction = std::sqrt(1 - std::pow(beta2, step)) / (1 - std::pow(beta1, step));
    w -= rate * correction * m / (sqrt(v) + epsilon);
    eval(w);
    EXPECT_NEAR(loss.scalar<float>(), (rw - 0.25) * (rw - 0.25), 1e-4);
    const double g = 2 * (rw - 0.25);
    rm = beta1 * rm + (1 - beta1) * g;
    rv = beta2 * rv + (1 - beta2) * g * g;
    rw -= rate * correction * rm / (std::sqrt(rv) + epsilon);
    if (step == 3) {
      counts = Counts();
    }
  }
  EXPECT_NEAR(w.toHostVector<float>()[5], rw, 1e-3);
  EXPECT_LT(std::fabs(rw - 0.25), 0.05);
  EXPECT_EQ(counts.plansBuilt(), 0u);
  EXPECT_EQ(counts.kernelsCompiled(), 0u);
}

TEST(Numbers, MomentumWithADecayingRate) {
  Tensor w = numbers(40), velocity = full({40}, 0.0);
  double rw = 0.5, rv = 0;
  Counts counts;
  for (int step = 0; step < 1000; ++step) {
    const double rate = 0.1 / (1 + step);
    velocity = 0.9 * velocity + (w + 1.0);
    w -= rate * velocity;
    rv = 0.9 * rv + (rw + 1);
    rw -= rate * rv;
    if (step % 10 == 0) {
      EXPECT_NEAR(w.toHostVector<float>()[3], rw, 1e-3);
    }
    if (step == 30) {
      counts = Counts();
    }
  }
  EXPECT_EQ(counts.plansBuilt(), 0u);
  EXPECT_EQ(counts.kernelsCompiled(), 0u);
}

// ---- Values ----

TEST(Values, EarlierReadsDoNotSeeLaterWrites) {
  Tensor x = Tensor::fromVector(std::vector<float>{1, 2, 3, 4});
  const Tensor sum1 = sum(x), copy = x, shifted = x + 1.0;
  Tensor tail = x(range(2, 4));
  const Tensor before = tail * 1.0;
  x += 10.0;
  x(0) = 100;
  const Tensor after = tail * 1.0;
  tail *= 2.0;
  EXPECT_EQ(sum1.scalar<float>(), 10);
  EXPECT_EQ(copy.toHostVector<float>(), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(shifted.toHostVector<float>(), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(before.toHostVector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(after.toHostVector<float>(), (std::vector<float>{13, 14}));
  EXPECT_EQ(x.toHostVector<float>(), (std::vector<float>{100, 12, 26, 28}));
}

// A transpose that a product takes over makes another library call, which may add in another order;
// the values are near.
TEST(Values, FoldedTransposesAreNear) {
  const Tensor x = rand({700, 300}), y = rand({200, 700});
  const Tensor lazy = matmul(transpose(x), transpose(y));
  const auto actual = lazy.toHostVector<float>();
  const BackendScope scope("eager", "ref");
  const auto expected = matmul(transpose(x), transpose(y)).toHostVector<float>();
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-5 * expected[i]);
  }
}

// ---- Automatic flush ----

BackendFactory flushingAt(const std::string& nodes, const std::string& bytes) {
  return [=](const std::string& device) {
    const Flags before = flags();
    flags().flushNodes = nodes;
    flags().flushBytes = bytes;
    auto backend = makeLazyBackend(device);
    flags() = before;
    return backend;
  };
}
const BackendRegistration flushing("flushing", flushingAt("40", "0"));
const BackendRegistration flushingBytes("flushingBytes", flushingAt("0", "2560"));
const BackendRegistration countingBytes("countingBytes", flushingAt("0", "2560"));
const BackendRegistration neverFlushing("neverFlushing", flushingAt("0", "0"));

TEST(Flush, KeepsResults) {
  for (uint64_t seed = 500; seed < 540; ++seed) {
    std::vector<HostValue> results[2];
    for (int i = 0; i < 2; ++i) {
      const BackendScope scope(i == 0 ? "eager" : "flushing", "cpu");
      results[i] = RandomProgram({seed}).run();
    }
    ASSERT_EQ(results[0].size(), results[1].size());
    for (size_t i = 0; i < results[0].size(); ++i) {
      // NaNs may differ in their payload; the fuzzer looks closer.
      const bool special =
          results[0][i].bytes != results[1][i].bytes && isFloating(results[0][i].type);
      EXPECT_TRUE(results[0][i].bytes == results[1][i].bytes || special) << seed;
    }
  }
}

// A loop flushes at the same line each time, so that its plan is reused.
TEST(Flush, OfALoopReusesItsPlan) {
  for (const char* backend : {"flushing", "flushingBytes"}) {
    const BackendScope scope(backend, "cpu");
    Tensor x = numbers(16);
    Counts counts;
    for (int i = 0; i < 400; ++i) {
      Tensor y = exp(x) - 1.0;
      y = sin(y) * 0.5;
      y = y + x * 0.25;
      x = tanh(y);
      if (i == 40) {
        EXPECT_GT(counts.realizes(), 4u) << backend;
        counts = Counts();
      }
    }
    EXPECT_GT(counts.realizes(), 40u) << backend;
    EXPECT_EQ(counts.plansBuilt(), 0u) << backend;
  }
}

TEST(Flush, CountsTheBytesOfOperandsAndResultsButNotOfViews) {
  const BackendScope scope("countingBytes", "cpu");
  Tensor x = numbers(160);
  const Counts counts;
  for (int i = 0; i < 100; ++i) {
    x = reshape(reshape(x, {10, 16}), {160});
  }
  x = exp(x);
  x = sin(x);
  EXPECT_EQ(counts.realizes(), 0u) << "640 bytes of the operand and 2 * 640";
  x = cos(x);
  EXPECT_EQ(counts.realizes(), 1u) << "4 * 640 bytes";
  x = tanh(x);
  EXPECT_EQ(counts.realizes(), 1u) << "counting starts again";
  EXPECT_NEAR(x.toHostVector<float>()[159], std::tanh(std::cos(std::sin(std::exp(0.5)))), 1e-6);
  EXPECT_EQ(counts.plansBuilt(), 2u);
}

// What is pending keeps its operands, which are large beside their sum.
TEST(Flush, LetsGoOfBatches) {
  const BackendScope scope("countingBytes", "cpu");
  const std::vector<float> batch(160, 0.5f);
  Tensor total = numbers(1);
  const Counts counts;
  for (int i = 0; i < 40; ++i) {
    total = total + sum(Tensor::fromVector(batch), {0});
  }
  EXPECT_GE(counts.realizes(), 8u);
  EXPECT_LE(counts.realizes(), 13u);
  EXPECT_EQ(total.toHostVector<float>()[0], 40 * 80 + 0.5f);
}

// What a sync realized is not pending any more.
TEST(Flush, CountsWhatIsPendingSinceASync) {
  const BackendScope scope("flushing", "cpu");
  Tensor x = numbers(16);
  sync();
  const Counts counts;
  for (int i = 0; i < 10; ++i) {
    for (int k = 0; k < 15; ++k) {
      x = exp(x);
    }
    sync();
  }
  EXPECT_EQ(counts.realizes(), 10u);
  EXPECT_EQ(counts.plansBuilt(), 1u);
}

TEST(Flush, NeverHappensWithoutLimits) {
  const BackendScope scope("neverFlushing", "cpu");
  Tensor x = numbers(16);
  const Counts counts;
  for (int i = 0; i < 5000; ++i) {
    x = x + 1.0;
  }
  EXPECT_EQ(counts.realizes(), 0u);
}

// ---- Bounded caches ----

const BackendRegistration bounded("bounded", makeLazyBackend);

// The engine keeps so many plans, and the kernels that they refer to.
constexpr Dim kPlans = 8192;

TEST(Plans, NotUsedForLongestAreDroppedWithTheirKernels) {
  const BackendScope scope("bounded", "cpu");
  auto old = [] { return (tanh(numbers(20)) * 3.0).toHostVector<float>(); };
  auto used = [] { return sqrt(numbers(20)).toHostVector<float>(); };
  auto other = [](Dim size) { return exp(numbers(size)).toHostVector<float>(); };
  const auto first = old();
  used();
  for (Dim size = 20; size < 20 + kPlans - 2; ++size) {
    other(size);
    used();
  }
  Counts counts;
  EXPECT_EQ(old(), first);
  EXPECT_EQ(counts.plansBuilt(), 0u) << "all are kept";
  other(2 * kPlans);  // takes the place of other(20)
  used();
  EXPECT_EQ(counts.plansBuilt(), 1u);
  EXPECT_EQ(counts.kernelsCompiled(), 0u);
  for (Dim size = 21; size < 21 + kPlans - 2; ++size) {
    other(size);
    used();
  }
  counts = Counts();
  EXPECT_EQ(old(), first);
  EXPECT_EQ(counts.plansBuilt(), 1u) << "dropped";
  EXPECT_EQ(counts.kernelsLoaded(), 1u) << "its kernel too, but for what the disk keeps";
  used();
  other(21 + kPlans - 3);
  EXPECT_EQ(counts.plansBuilt(), 1u);
}

// ---- Background compilation ----

std::unique_ptr<TensorBackend> makeAsync(const std::string& device) {
  const std::string before = flags().jit;
  flags().jit = "async";
  auto backend = makeLazyBackend(device);
  flags().jit = before;
  return backend;
}
const BackendRegistration async("async", makeAsync);

TEST(Compiler, ReplacesTier0WithTheSameBits) {
  const BackendScope scope("async", "cpu");
  const Tensor x = rand({33, 70});
  auto run = [&] {
    const Tensor e = exp(x - amax(x, {0}, true));
    return (e / sum(e, {0}, true)).toHostVector<float>();
  };
  const Counts counts;
  const auto first = run();
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(run(), first);
  }
  waitForCompiler(getBackend("async", "cpu"));
  EXPECT_GT(counts.kernelsCompiled(), 0u);
  EXPECT_EQ(run(), first);
  EXPECT_EQ(counts.fallbacks(), 0u);
}

// Here, where a tensor that nothing reads takes no memory.
TEST(Recording, RefusesLinesThatAnIndexDoesNotCount) {
  const Tensor x = full({Dim{1} << 31}, 1, dtype::u8);
  Tensor values, indices;
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"argmax", [&] { argmax(x, 0); }},
      {"argmin", [&] { argmin(x, 0); }},
      {"max", [&] { max(values, indices, x, 0); }},
      {"min", [&] { min(values, indices, x, 0); }},
  };
  const Counts counts;
  for (const auto& [name, call] : calls) {
    EXPECT_EQ(
        test::errorOf(call).find(
            std::string(name) + ": u8[2147483648]: axis 0 has more elements than are counted, at "),
        0u);
  }
  const Tensor more = full({(Dim{1} << 32) + 1}, 1, dtype::b8);
  const std::pair<const char*, std::function<void()>> ordering[] = {
      {"argsort", [&] { argsort(more, 0); }},
      {"sort", [&] { sort(values, indices, more, 0); }},
      {"topk", [&] { topk(values, indices, more, 2, 0); }},
      {"nonzero", [&] { nonzero(more); }},
      {"nonzero", [&] { more(more); }},
  };
  for (const auto& [name, call] : ordering) {
    const std::string message = test::errorOf(call);
    EXPECT_EQ(message.find(name), 0u) << message;
    EXPECT_NE(message.find(": u32 does not count 4294967297 places, at "), std::string::npos)
        << message;
  }
  EXPECT_EQ(counts.realizes(), 0u);
}

TEST(Compiler, IsThatOfALazyBackend) {
  EXPECT_THROW(waitForCompiler(getBackend("eager")), std::invalid_argument);
}

// ---- The caller's floating-point environment ----

class Environment : public ::testing::TestWithParam<unsigned> {
 protected:
  static constexpr unsigned kControl = ~0x3fu;  // all but the exceptions that there were
  void SetUp() override { _mm_setcsr(before_ ^ GetParam()); }
  void TearDown() override { _mm_setcsr(before_); }
  const unsigned before_ = _mm_getcsr();
};

TEST_P(Environment, IsKept) {
  const unsigned control = _mm_getcsr() & kControl;
  for (const char* backend : {"lazy", "eager"}) {
    for (int threads : {1, 2}) {
      host::setNumThreads(threads);
      const BackendScope scope(backend);
      const Tensor x = rand({200, 300}), image = rand({12, 12, 4, 2});
      const Tensor y = sum(exp(x), {0}) + sum(matmul(x, transpose(x))) * 0.1;
      const Tensor z = conv2d(image, rand({3, 3, 4, 8}));
      EXPECT_EQ(y.toHostVector<float>().size(), 300u);
      EXPECT_EQ(z.toHostVector<float>().size(), 10u * 10 * 8 * 2);
      EXPECT_EQ(_mm_getcsr() & kControl, control);
    }
  }
}

// By the program, which may itself compute otherwise: 0.1f and 1e-40f are compile-time numbers.
TEST_P(Environment, ChangesNoNumber) {
  for (const char* backend : {"lazy", "eager"}) {
    const BackendScope scope(backend);
    const Tensor tenth = full({1}, 0.1), tiny = full({1}, 0.0) + 1e-40, huge = full({1}, 1e300);
    const Tensor bits = tiny.astype(dtype::f64) * 0x1p149;
    EXPECT_EQ(std::bit_cast<unsigned>(tenth.scalar<float>()), std::bit_cast<unsigned>(0.1f));
    EXPECT_EQ(std::bit_cast<unsigned>(tiny.scalar<float>()), std::bit_cast<unsigned>(1e-40f));
    EXPECT_EQ(bits.scalar<double>(), 71362);
    EXPECT_EQ(huge.astype(dtype::s32).scalar<int>(), std::numeric_limits<int>::max());
  }
}

TEST_P(Environment, IsNotTheCheckers) {
  const auto check = std::exchange(flags().check, "ref");
  const Tensor x = Tensor::fromVector(std::vector<float>{1e-40f, 1.5f, -1.5f, 3e38f});
  const FreshEngine engine;
  EXPECT_EQ((x > 0).toHostVector<char>(), std::vector<char>({1, 1, 0, 1}));
  const Tensor half = (x + x).astype(dtype::f16);
  EXPECT_EQ(half.astype(dtype::f32).toHostVector<float>(),
            std::vector<float>({0, 3, -3, std::numeric_limits<float>::infinity()}));
  flags().check = check;
}

// Every thread computes alike, with subnormal numbers.
TEST_P(Environment, ChangesNoResult) {
  for (const char* backend : {"lazy", "eager"}) {
    for (int threads : {1, 2}) {
      host::setNumThreads(threads);
      const BackendScope scope(backend);
      const Tensor smallest = exp(full({1 << 16}, -90.f));
      EXPECT_EQ(countNonzero(smallest).scalar<unsigned>(), 1u << 16) << backend << " " << threads;
      EXPECT_FLOAT_EQ(amax(smallest).scalar<float>(), 8.194013e-40f);
    }
  }
}

// As it is, FTZ and DAZ, rounding toward zero, traps on all but what is inexact or subnormal.
INSTANTIATE_TEST_SUITE_P(Modes, Environment, ::testing::Values(0u, 0x8040u, 0x6000u, 0x680u));

TEST(Denormals, AreKept) {
  const Tensor x = Tensor::fromVector(std::vector<float>{1e-40f, -3e-42f});
  EXPECT_EQ((x * 2.0).toHostVector<float>(), (std::vector<float>{2 * 1e-40f, 2 * -3e-42f}));
  EXPECT_EQ(matmul(x, full({2, 1}, 1.0)).toHostVector<float>()[0], 1e-40f - 3e-42f);
}

}  // namespace
}  // namespace fl::testing
