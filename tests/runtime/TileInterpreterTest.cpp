// The tile interpreter against the plain reading of the kernel form, bit for bit, in both variants
// and for several splits of the domain. Every operand ends or begins at an unreadable page.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "fl/base/Error.h"
#include "fl/tile/TileInterpreter.h"
#include "tests/Seed.h"
#include "tests/codegen/KernelLaunch.h"
#include "tests/codegen/KernelMaker.h"
#include "tests/codegen/RandomKernel.h"
#include "tests/runtime/TileVariants.h"

namespace fl::tile {
namespace {

using ir::Op;
using ir::Stride;
using testing::kAny;
using testing::KernelLaunch;
using testing::KernelMaker;
using testing::kOne;
using testing::kZero;
using testing::LaunchOptions;
using testing::testSeed;

// Runs parts of `grain` kept elements (0: all in one), the last part first.
void runTiles(const KernelLaunch& launch, TileVariant variant, int64_t grain = 0,
              bool streams = false) {
  const TileProgram program(launch.kernel(), variant);
  const int64_t domain = launch.domain();
  const int64_t part = grain > 0 ? grain : std::max<int64_t>(domain, 1);
  for (int64_t begin = (domain + part - 1) / part * part; (begin -= part) >= 0;) {
    EXPECT_EQ(program.run(launch.args(), begin, std::min(begin + part, domain), streams), -1);
  }
}

void expectSame(const KernelLaunch& launch, const KernelLaunch& expected) {
  for (TileVariant variant : testing::tileVariants()) {
    for (int64_t grain : {0, 1, 7, 64, 600}) {
      const KernelLaunch actual(launch);
      runTiles(actual, variant, grain, /*streams=*/grain == 64);
      ASSERT_EQ(actual.difference(expected), "")
          << "variant " << static_cast<int>(variant) << ", grain " << grain << ", extents "
          << ::testing::PrintToString(launch.extents());
    }
  }
}

void expectReference(const KernelLaunch& launch) {
  const KernelLaunch expected(launch);
  runReference(expected);
  expectSame(launch, expected);
}

template <class T>
T elementAt(const KernelLaunch& launch, int operand, const std::vector<int64_t>& index) {
  const T* element = static_cast<const T*>(launch.data(operand));
  for (size_t axis = 0; axis < index.size(); ++axis) {
    element += index[axis] * launch.stride(operand, static_cast<int>(axis));
  }
  return *element;
}

// ---- maps ----

TEST(TileInterpreterTest, MapReadsAndWritesAnyLayout) {
  std::mt19937_64 random(1);
  KernelMaker maker(3);
  const int dense = maker.input(dtype::f32, {kOne, kAny, kAny});
  const int transposed = maker.input(dtype::f32, {kAny, kAny, kOne});
  const int repeated = maker.input(dtype::f32, {kZero, kAny, kAny});
  const int row = maker.input(dtype::f32, {kAny, kZero, kZero});
  const int single = maker.input(dtype::f32, {kZero, kZero, kZero});
  int sum = dense;
  for (int value : {transposed, repeated, row, single}) {
    sum = maker.apply(Op::Add, {sum, value});
  }
  maker.beginStage(false);
  maker.store(sum, {kAny, kAny, kAny});
  for (int i = 0; i < 10; ++i) {  // strides, gaps and directions differ from launch to launch
    const KernelLaunch launch(maker.kernel(), {70, 31, 3}, random, {.guardAfter = i % 2 == 0});
    expectReference(launch);
    runTiles(launch, bestTileVariant());
    const auto at = [&](int operand) { return elementAt<float>(launch, operand, {3, 4, 1}); };
    EXPECT_EQ(at(5), at(0) + at(1) + at(2) + at(3) + at(4));
  }
}

TEST(TileInterpreterTest, MapsThatCrossMemoryAreWalkedInStrips) {
  std::mt19937_64 random(testSeed(22));
  int rank = 2;
  for (dtype type : {dtype::f32, dtype::f16, dtype::u8, dtype::s64}) {
    const auto strides = [&](std::vector<Stride> first) {
      first.resize(rank, kAny);
      return first;
    };
    KernelMaker maker(rank);
    const int across = maker.input(type, strides({kAny, kOne}));
    const int along = maker.cast(maker.input(dtype::f32, strides({kOne, kAny})), dtype::f64);
    const int number = maker.cast(maker.index(strides({kOne, kAny})), dtype::f64);
    maker.beginStage(false);
    maker.store(across, strides({kOne, kAny}));
    const int sum = maker.apply(Op::Add, {along, number});
    maker.store(maker.apply(Op::Add, {sum, maker.cast(across, dtype::f64)}), strides({kAny, kOne}));
    for (std::vector<int64_t> extents :
         {std::vector<int64_t>{32, 40}, {31, 33}, {100, 17}, {7, 150}, {65, 2}, {600, 3}}) {
      extents.resize(rank, 2);
      expectReference(KernelLaunch(maker.kernel(), extents, random));
    }
    ++rank;
  }
}

TEST(TileInterpreterTest, EmptyExtentsDoNothing) {
  std::mt19937_64 random(2);
  KernelMaker map(2);
  const int x = map.input(dtype::f32, {kOne, kAny});
  map.beginStage(false);
  map.store(map.apply(Op::Exp, {x}), {kOne, kAny});
  expectReference(KernelLaunch(map.kernel(), {0, 5}, random));
  expectReference(KernelLaunch(map.kernel(), {5, 0}, random));
}

TEST(TileInterpreterTest, ReductionsOfNothingAreTheirInitialValues) {
  std::mt19937_64 random(3);
  for (uint32_t reduced : {0b01u, 0b10u}) {
    KernelMaker maker(2, reduced);
    const int x = maker.input(dtype::f32, {kOne, kAny});
    maker.beginStage(true);
    const int sum = maker.total(maker.reduce(Op::Sum, x), dtype::f32);
    const int max = maker.total(maker.reduce(Op::Amax, x), dtype::f32);
    maker.beginStage(false);
    for (int total : {sum, max}) {
      maker.store(total, {reduced == 1 ? kZero : kOne, reduced == 1 ? kOne : kZero});
    }
    const bool rows = reduced == 1;
    const KernelLaunch launch(maker.kernel(), {rows ? 0 : 700, rows ? 700 : 0}, random);
    expectReference(launch);
    runTiles(launch, bestTileVariant());
    EXPECT_EQ(static_cast<float*>(launch.data(1))[699], 0);
    EXPECT_EQ(static_cast<float*>(launch.data(2))[699], -std::numeric_limits<float>::infinity());
  }
}

TEST(TileInterpreterTest, LongChainsAndManyOutputsReuseTheirTiles) {
  std::mt19937_64 random(4);
  KernelMaker maker(1);
  std::vector<int> values = {maker.input(dtype::f32, {kOne}),
                             maker.cast(maker.input(dtype::f64, {kOne}), dtype::f32),
                             maker.scalar(dtype::f32)};
  const Op ops[] = {Op::Add, Op::Mul, Op::Sub, Op::Maximum};
  for (int i = 0; i < 100; ++i) {
    values.push_back(maker.apply(ops[i % 4], {values[random() % values.size()], values.back()}));
  }
  maker.beginStage(false);
  for (int i : {102, 50, 0, 2}) {
    maker.store(values[i], {kOne});
  }
  expectReference(KernelLaunch(maker.kernel(), {1500}, random));
}

// The memory planner may give an output the memory of an input that dies in the kernel.
TEST(TileInterpreterTest, OutputsMayReplaceInputs) {
  KernelMaker maker(1);
  const int x = maker.input(dtype::f32, {kOne}), y = maker.input(dtype::f32, {kAny});
  maker.beginStage(false);
  maker.store(x, {kAny});  // operand 2 takes the place of y, operand 3 that of x
  maker.store(maker.apply(Op::Add, {x, y}), {kOne});
  for (int64_t size : {5, 512, 1300}) {
    std::mt19937_64 random(5);
    const KernelLaunch launch(maker.kernel(), {size}, random, {.irregular = false});
    const KernelLaunch expected(launch);
    runReference(expected);
    for (TileVariant variant : testing::tileVariants()) {
      KernelLaunch actual(launch);
      actual.share(2, 1);
      actual.share(3, 0);
      runTiles(actual, variant);
      EXPECT_EQ(actual.difference(expected), "") << size;
    }
  }
}

// A later step reads the input whose memory an earlier one's result takes.
TEST(TileInterpreterTest, AnInputIsReplacedOnceAllHaveReadIt) {
  KernelMaker maker(1);
  const int x = maker.input(dtype::f32, {kOne}), y = maker.input(dtype::f32, {kOne});
  const int sum = maker.apply(Op::Add, {x, y});
  maker.beginStage(false);
  maker.store(sum, {kOne});
  maker.store(maker.apply(Op::Mul, {sum, x}), {kOne});
  for (int64_t size : {5, 512, 1300}) {
    std::mt19937_64 random(8);
    const KernelLaunch launch(maker.kernel(), {size}, random, {.irregular = false});
    const KernelLaunch expected(launch);
    runReference(expected);
    for (TileVariant variant : testing::tileVariants()) {
      KernelLaunch actual(launch);
      actual.share(2, 0);
      runTiles(actual, variant);
      EXPECT_EQ(actual.difference(expected), "") << size;
    }
  }
}

// The same for a sweep that also sums what it replaces.
TEST(TileInterpreterTest, SweepsMayReplaceTheirInput) {
  KernelMaker maker(2, 0b01);
  const int x = maker.input(dtype::f32, {kOne, kAny});
  maker.beginStage(true);
  const int total = maker.total(maker.reduce(Op::Sum, x), dtype::f32);
  maker.store(maker.apply(Op::Mul, {x, x}), {kOne, kAny});
  maker.beginStage(false);
  maker.store(total, {kZero, kOne});
  for (int64_t length : {64, 512, 1024}) {
    std::mt19937_64 random(6);
    const KernelLaunch launch(maker.kernel(), {length, 4}, random, {.irregular = false});
    const KernelLaunch expected(launch);
    runReference(expected);
    for (TileVariant variant : testing::tileVariants()) {
      KernelLaunch actual(launch);
      actual.share(1, 0);
      runTiles(actual, variant);
      EXPECT_EQ(actual.difference(expected), "") << length;
    }
  }
}

TEST(TileInterpreterTest, RandomNumbersDependOnTheIndexAlone) {
  std::mt19937_64 random(7);
  KernelMaker maker(2);
  const int seed = maker.scalar(dtype::u64), offset = maker.scalar(dtype::u64);
  const int index = maker.index({kOne, kAny});
  maker.beginStage(false);
  maker.store(maker.random(dtype::f32, seed, offset, index), {kOne, kAny});
  maker.store(maker.random(dtype::f64, seed, offset, index), {kAny, kOne});
  maker.store(index, {kOne, kAny});
  const KernelLaunch launch(maker.kernel(), {100, 30}, random, {.irregular = false});
  expectReference(launch);
  runTiles(launch, bestTileVariant());
  EXPECT_EQ(elementAt<int64_t>(launch, 3, {3, 4}), 1000 + 3 + 100 * 4);
  double sum = 0;
  for (int i = 0; i < 3000; ++i) {
    const float value = static_cast<float*>(launch.data(1))[i];
    EXPECT_TRUE(value > 0 && value <= 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 3000, 0.5, 0.02);
}

// ---- reductions ----

// The sum of x, and the maximum and the minimum of x * y, over the reduced axes.
ir::Kernel makeReduction(int rank, uint32_t reduced, dtype type) {
  KernelMaker maker(rank, reduced);
  std::vector<Stride> fast(rank, kAny), kept(rank, kAny);
  fast[0] = kOne;
  const int x = maker.input(type, fast), y = maker.input(type, std::vector<Stride>(rank, kAny));
  const int product = maker.apply(Op::Mul, {x, y});
  maker.beginStage(true);
  const int reductions[] = {maker.reduce(Op::Sum, x), maker.reduce(Op::Amax, product),
                            maker.reduce(Op::Amin, product)};
  maker.beginStage(false);
  for (int axis = 0; axis < rank; ++axis) {
    kept[axis] = reduced >> axis & 1 ? kZero : kAny;
  }
  for (int reduction : reductions) {
    maker.store(maker.total(reduction, type), kept);
  }
  return maker.kernel();
}

TEST(TileInterpreterTest, RowReductionsFollowTheTree) {
  std::mt19937_64 random(8);
  for (int64_t n : {1, 10, 31, 32, 47, 63, 100, 511, 512, 513, 1100}) {
    expectReference(KernelLaunch(makeReduction(2, 0b01, dtype::f32), {n, 13}, random));
    expectReference(KernelLaunch(makeReduction(3, 0b011, dtype::f32), {n, 3, 4}, random));
    expectReference(KernelLaunch(makeReduction(3, 0b101, dtype::f64), {n, 3, 4}, random));
  }
  expectReference(KernelLaunch(makeReduction(2, 0b11, dtype::f32), {7, 2000}, random));
}

TEST(TileInterpreterTest, RowReductionsAreChunked) {
  std::mt19937_64 random(9);
  const int64_t chunk = ir::kRowChunk;
  expectReference(KernelLaunch(makeReduction(1, 0b1, dtype::f32), {chunk + 1000}, random));
  expectReference(KernelLaunch(makeReduction(2, 0b11, dtype::f32), {chunk + 45, 2}, random));
  expectReference(KernelLaunch(makeReduction(2, 0b11, dtype::f32), {chunk / 3, 14}, random));
  expectReference(KernelLaunch(makeReduction(3, 0b101, dtype::f32), {3, 2, 300}, random));
}

TEST(TileInterpreterTest, ColumnReductionsFollowTheTree) {
  std::mt19937_64 random(10);
  for (int64_t n : {1, 2, 127, 128, 129, 300}) {
    for (int64_t kept : {1, 5, 64, 100}) {
      expectReference(KernelLaunch(makeReduction(2, 0b10, dtype::f32), {kept, n}, random));
    }
    expectReference(KernelLaunch(makeReduction(3, 0b110, dtype::f32), {6, n, 3}, random));
    expectReference(KernelLaunch(makeReduction(3, 0b010, dtype::f64), {7, n, 3}, random));
  }
  expectReference(KernelLaunch(makeReduction(2, 0b10, dtype::f32), {700, 130}, random));
  expectReference(KernelLaunch(makeReduction(4, 0b1110, dtype::f32), {6, 3, 7, 40}, random));
}

TEST(TileInterpreterTest, ReductionsOfEveryType) {
  std::mt19937_64 random(11);
  for (int type = 0; type < kDtypeCount; ++type) {
    const dtype t = static_cast<dtype>(type);
    if (computeType(t) == t) {
      expectReference(KernelLaunch(makeReduction(2, 0b01, t), {77, 6}, random));
      expectReference(KernelLaunch(makeReduction(2, 0b10, t), {6, 77}, random));
    }
  }
}

TEST(TileInterpreterTest, SumsAreAccurate) {
  std::mt19937_64 random(12);
  for (uint32_t reduced : {0b01u, 0b10u}) {
    const KernelLaunch launch(makeReduction(2, reduced, dtype::f32), {1000, 1000}, random,
                              {.irregular = false});
    runTiles(launch, bestTileVariant());
    for (int64_t k = 0; k < 1000; ++k) {
      long double want = 0, magnitude = 0;
      for (int64_t i = 0; i < 1000; ++i) {
        const float value = reduced == 0b01 ? elementAt<float>(launch, 0, {i, k})
                                            : elementAt<float>(launch, 0, {k, i});
        want += value;
        magnitude += std::fabs(value);
      }
      // Half an ulp for each level of the tree, where a running sum may have 1000.
      const double depth = reduced == 0b01 ? 1000 / 32 + 7 : 128 + 8;
      ASSERT_NEAR(static_cast<float*>(launch.data(2))[k], want, magnitude * depth * 0x1p-24);
    }
  }
}

TEST(TileInterpreterTest, MaximaKeepNan) {
  std::mt19937_64 random(13);
  for (uint32_t reduced : {0b01u, 0b10u}) {
    for (int64_t at : {0, 7, 31, 32, 40, 99}) {
      const KernelLaunch launch(makeReduction(2, reduced, dtype::f32), {100, 100}, random,
                                {.irregular = false});
      float* const x = static_cast<float*>(launch.data(0));
      x[reduced == 0b01 ? at + 100 * 3 : 3 + 100 * at] = std::numeric_limits<float>::quiet_NaN();
      for (TileVariant variant : testing::tileVariants()) {
        runTiles(launch, variant);
        for (int output : {3, 4}) {
          EXPECT_TRUE(std::isnan(static_cast<float*>(launch.data(output))[3])) << at;
          EXPECT_FALSE(std::isnan(static_cast<float*>(launch.data(output))[2])) << at;
        }
      }
    }
  }
}

// ---- several stages ----

// exp(x - max) / sum in three sweeps.
ir::Kernel makeSoftmax(uint32_t reduced) {
  KernelMaker maker(2, reduced);
  const int x = maker.input(dtype::f32, {kOne, kAny});
  maker.beginStage(true);
  const int max = maker.total(maker.reduce(Op::Amax, x), dtype::f32);
  maker.beginStage(true);
  const int power = maker.apply(Op::Exp, {maker.apply(Op::Sub, {x, max})});
  const int sum = maker.total(maker.reduce(Op::Sum, power), dtype::f32);
  maker.beginStage(true);
  maker.store(maker.apply(Op::Div, {power, sum}), {kOne, kAny});
  return maker.kernel();
}

TEST(TileInterpreterTest, SoftmaxIsOneKernel) {
  std::mt19937_64 random(14);
  for (int64_t n : {1, 10, 100, 512, 777}) {
    for (uint32_t reduced : {0b01u, 0b10u}) {
      const bool rows = reduced == 0b01;
      const KernelLaunch launch(makeSoftmax(reduced), {rows ? n : 30, rows ? 30 : n}, random);
      const KernelLaunch first(launch);
      runTiles(first, TileVariant::V3);
      expectSame(launch, first);
      for (int64_t k = 0; k < 30; ++k) {
        const auto at = [&](int operand, int64_t i) {
          return elementAt<float>(first, operand, {rows ? i : k, rows ? k : i});
        };
        long double sum = 0;
        for (int64_t i = 0; i < n; ++i) {
          sum += std::exp(static_cast<long double>(at(0, i)));
        }
        for (int64_t i = 0; i < n; ++i) {
          const long double want = std::exp(static_cast<long double>(at(0, i))) / sum;
          ASSERT_NEAR(at(1, i), want, static_cast<double>(want) * 1e-6);
        }
      }
    }
  }
}

TEST(TileInterpreterTest, RandomKernelsAgreeWithTheReference) {
  std::mt19937_64 seeds(testSeed(15));
  for (int i = 0; i < 120 && !HasFailure(); ++i) {
    std::mt19937_64 random(seeds());
    const ir::Kernel kernel = testing::drawKernel(random, {.exact = true});
    const LaunchOptions options{.special = random() % 2 == 0, .guardAfter = random() % 2 == 0};
    SCOPED_TRACE(detail::concat("kernel ", i));
    expectReference(KernelLaunch(kernel, testing::drawExtents(kernel, random), random, options));
  }
}

TEST(TileInterpreterTest, RandomKernelsAgreeForAllVariantsAndSplits) {
  std::mt19937_64 seeds(testSeed(16));
  for (int i = 0; i < 200 && !HasFailure(); ++i) {
    std::mt19937_64 random(seeds());
    const ir::Kernel kernel = testing::drawKernel(random, {.exact = false});
    const LaunchOptions options{.special = random() % 2 == 0, .guardAfter = random() % 2 == 0};
    const KernelLaunch launch(kernel, testing::drawExtents(kernel, random), random, options);
    const KernelLaunch first(launch);
    runTiles(first, TileVariant::V3);
    SCOPED_TRACE(detail::concat("kernel ", i));
    expectSame(launch, first);
  }
}

TEST(TileInterpreterTest, ThreadsShareAProgram) {
  std::mt19937_64 random(17);
  const KernelLaunch launch(makeSoftmax(0b01), {100, 4000}, random), expected(launch);
  runTiles(expected, bestTileVariant());
  const TileProgram program(launch.kernel());
  std::vector<std::thread> threads;
  for (int64_t begin = 0; begin < 4000; begin += 500) {
    threads.emplace_back([&, begin] { program.run(launch.args(), begin, begin + 500); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(launch.difference(expected), "");
}

TEST(TileInterpreterTest, RefusesKernelsThatBreakTheRules) {
  KernelMaker maker(2, 0b01);
  const int x = maker.input(dtype::f32, {kOne, kAny});
  maker.beginStage(false);
  maker.store(x, {kZero, kOne});  // which element of the sweep?
  EXPECT_THROW(TileProgram(maker.kernel()), InternalError);
  KernelMaker mixed(1);
  mixed.beginStage(false);
  mixed.store(
      mixed.apply(Op::Add, {mixed.input(dtype::f32, {kOne}), mixed.input(dtype::f64, {kOne})}),
      {kOne});
  EXPECT_THROW(TileProgram(mixed.kernel()), InternalError);
}

}  // namespace
}  // namespace fl::tile
