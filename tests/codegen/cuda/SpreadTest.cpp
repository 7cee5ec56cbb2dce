// Reductions that blocks share, of parts that are planted: whether their order matters, and what is
// stored before the sweep. On the host, against the tile interpreter, bit for bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fl/kernel/cuda/Launch.h"
#include "fl/tile/TileInterpreter.h"
#include "tests/Seed.h"
#include "tests/codegen/KernelLaunch.h"
#include "tests/codegen/KernelMaker.h"
#include "tests/codegen/cuda/HostModule.h"

namespace fl::testing {
namespace {

using ir::Op;
using ir::cuda::kWarp;
using ir::cuda::Launch;
using ir::cuda::launchOf;
using ir::cuda::packArguments;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kColumns = 33;

// Of all or of each column.
ir::Kernel reduction(Op op, dtype type, bool isRow) {
  KernelMaker maker(isRow ? 1 : 2, isRow ? 1 : 2);
  const int x = maker.input(type, isRow ? std::vector{kOne} : std::vector{kOne, kAny});
  maker.beginStage(true);
  const int total = maker.total(maker.reduce(op, x), type);
  maker.beginStage(false);
  maker.store(total, isRow ? std::vector{kZero} : std::vector{kOne, kZero});
  return maker.kernel();
}

Launch shared(const KernelLaunch& launch, int warps, int splits) {
  const int64_t each = launch.kernel().rows() ? 1 : kWarp;
  const int64_t blocks = (launch.domain() + each - 1) / each;
  size_t bytes = launch.domain() * sizeof(uint64_t);
  for (int axis = 0; axis < launch.kernel().rank; ++axis) {
    bytes *= launch.kernel().isReduced(axis) ? launch.extents()[axis] : 1;
  }
  return {blocks, {kWarp, warps, 1}, splits, bytes};
}

// In blocks of several shapes, which run in both orders.
void expectTilesBits(const HostModule& module, const KernelLaunch& launch,
                     std::pair<int, int> inPlace = {-1, -1}) {
  const auto copy = [&](const KernelLaunch& from) {
    auto made = std::make_unique<KernelLaunch>(from);
    if (inPlace.first >= 0) made->share(inPlace.first, inPlace.second);
    return made;
  };
  const auto expected = copy(launch);
  ASSERT_EQ(tile::TileProgram(launch.kernel()).run(expected->args(), 0, expected->domain()), -1);
  for (const int warps : {1, 2, 8}) {
    for (const bool reversed : {false, true}) {
      const auto actual = copy(launch);
      const Launch shape = shared(launch, warps, /*splits=*/3);
      std::vector<uint64_t> parts(shape.partBytes / sizeof(uint64_t));
      std::vector<uint32_t> counters(ir::cuda::kMostShared);
      module.launch(
          {"k", &launch.kernel()}, shape,
          packArguments(launch.kernel(), actual->args(), {nullptr, parts.data(), counters.data()}),
          reversed);
      EXPECT_EQ(actual->difference(*expected), "") << warps << " warps, reversed " << reversed;
      EXPECT_THAT(counters, ::testing::Each(0));
    }
  }
}

// The numbers are the parts, each that of a chunk whose other elements are neutral; of columns
// those of one, while the parts of others are 1.
template <class T>
class PlantedParts {
 public:
  PlantedParts(Op op, dtype type, bool isRow)
      : isRow_(isRow),
        neutral_(op == Op::Sum    ? T(0)
                 : op == Op::Amax ? std::numeric_limits<T>::lowest()
                                  : std::numeric_limits<T>::max()),
        kernel_(reduction(op, type, isRow)),
        module_({{"k", &kernel_}}) {}

  void check(const std::vector<T>& parts) {
    const int64_t chunk = isRow_ ? ir::kRowChunk : ir::kColumnChunk;
    const int64_t width = isRow_ ? 1 : kColumns, length = chunk * parts.size() - 3;
    std::mt19937_64 random(1);
    const KernelLaunch launch(kernel_, isRow_ ? std::vector{length} : std::vector{width, length},
                              random, {.irregular = false});
    T* const data = static_cast<T*>(launch.data(0));
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t column = 0; column < width; ++column) {
        const bool isPart = i % chunk == 5;
        data[i * width + column] = !isPart              ? neutral_
                                   : column + 1 < width ? T(1)
                                                        : parts[i / chunk];
      }
    }
    SCOPED_TRACE(::testing::PrintToString(parts));
    expectTilesBits(module_, launch);
  }

 private:
  const bool isRow_;
  const T neutral_;
  const ir::Kernel kernel_;
  const HostModule module_;
};

// Some big numbers, of which the sum takes so many bits, two ones that are lost between them, and
// what cancels the big ones.
std::vector<float> cancelling(int count, double big) {
  std::vector<float> parts(count, static_cast<float>(big));
  parts.insert(parts.end(), 2, 1.0f);
  parts.insert(parts.end(), count, static_cast<float>(-big));
  return parts;
}

TEST(SpreadSums, KeepTheOrderWhereItMatters) {
  std::mt19937_64 random(testSeed(61));
  for (const bool isRow : {true, false}) {
    PlantedParts<float> sums(Op::Sum, dtype::f32, isRow);
    sums.check(cancelling(5, 1e30));
    sums.check(cancelling(5, 0x1p53));
    // Just beyond 2^53, where ones are lost, before they cancel.
    sums.check(cancelling(40, 0x1p48 - 0x1p24));
    sums.check({1e8f, 1, -1e8f, 1e-30f, 1e8f, 0x1p-149f, -1e8f, 3, 0, -0.0f, 1e30f, -1e30f, 7});
    sums.check(std::vector<float>(11, 0x1p-149f));
    sums.check(std::vector<float>(40, std::numeric_limits<float>::max()));
    sums.check(
        {1, -static_cast<float>(kInfinity), 2, static_cast<float>(kInfinity), 3, 4, 5, 6, 7});
    sums.check({1, 2, std::numeric_limits<float>::quiet_NaN(), 4, 5, 6, 7, 8, 9});
    sums.check(std::vector<float>(9, -0.0f));
    std::uniform_real_distribution<float> number(-1, 1);
    std::uniform_int_distribution<int> exponent(-12, 12);
    for (const bool isWide : {false, true}) {
      std::vector<float> parts(50);
      for (float& part : parts) part = std::ldexp(number(random), isWide ? exponent(random) : 0);
      sums.check(parts);
    }
  }
}

TEST(SpreadSums, OfOtherTypes) {
  for (const bool isRow : {true, false}) {
    PlantedParts<double>(Op::Sum, dtype::f64, isRow)
        .check({1e30, 1, 1, -1e30, 1, 5, 1e30, 2, -1e30, 3});
    std::vector<int32_t> wrapping(19, INT32_MAX);
    wrapping[7] = INT32_MIN;
    PlantedParts<int32_t>(Op::Sum, dtype::s32, isRow).check(wrapping);
    PlantedParts<int32_t>(Op::Amin, dtype::s32, isRow).check(wrapping);
  }
}

TEST(SpreadExtremes, KeepTheSignOfZeroAndNaN) {
  for (const bool isRow : {true, false}) {
    PlantedParts<float> largest(Op::Amax, dtype::f32, isRow);
    largest.check({-3, -0.0f, 0.0f, -1, -0.0f, -2, -5, -6, -7, -8});
    largest.check({-3, -0.0f, -0.0f, -1, 0.0f, -2, -5, -6, -7, -8});
    largest.check({-3, 5, 7, -1, std::numeric_limits<float>::quiet_NaN(), -2, -5, 6, 1, 2});
    largest.check({-3, 5, 7, -1, static_cast<float>(kInfinity), -2, -5, 6, 1, 2});
    PlantedParts<double> least(Op::Amin, dtype::f64, isRow);
    least.check({3, -0.0, 0.0, 1, -0.0, 2, 5, 6, 7, 8});
    least.check({3, -4, 0.0, 1, -0.0, 2, 5, 6, 7, 8});
  }
}

// Over what it is made of, which the sweep's blocks read, too.
TEST(SpreadSums, WhatComesBeforeThemIsStoredOnce) {
  for (const bool isRow : {true, false}) {
    const std::vector<ir::Stride> all = {kOne, kAny};
    const std::vector<ir::Stride> kept =
        isRow ? std::vector{kZero, kOne} : std::vector{kOne, kZero};
    KernelMaker maker(2, isRow ? 1 : 2);
    const int y = maker.input(dtype::f32, kept);
    const int doubled = maker.apply(Op::Add, {y, y});
    maker.beginStage(false);
    maker.store(doubled, kept);
    const int x = maker.apply(Op::Mul, {maker.input(dtype::f32, all), doubled});
    maker.beginStage(true);
    const int sum = maker.total(maker.reduce(Op::Sum, x), dtype::f32);
    maker.beginStage(false);
    maker.store(maker.apply(Op::Add, {sum, doubled}), kept);
    const ir::Kernel kernel = maker.kernel();
    EXPECT_EQ(ir::cuda::sharedSweep(kernel), 1);
    const HostModule module({{"k", &kernel}});
    std::mt19937_64 random(2);
    const std::vector<int64_t> extents =
        isRow ? std::vector<int64_t>{9 * ir::kRowChunk, 3} : std::vector<int64_t>{40, 1280};
    EXPECT_EQ(launchOf(kernel, extents.data()).splits, 5);
    expectTilesBits(module, KernelLaunch(kernel, extents, random), {1, 0});
  }
}

// Few parts, in blocks of few warps unless a later sweep is left to one of them.
TEST(SpreadLaunches, AreOfFewWarps) {
  const auto shapeOf = [](const ir::Kernel& kernel, std::vector<int64_t> extents) {
    const Launch launch = launchOf(kernel, extents.data());
    return std::vector<int64_t>{launch.blocks, launch.splits, launch.threads[1]};
  };
  const ir::Kernel row = reduction(Op::Sum, dtype::f32, true);
  EXPECT_EQ(shapeOf(row, {8 * 4096}), (std::vector<int64_t>{1, 1, 8}));
  EXPECT_EQ(shapeOf(row, {9 * 4096}), (std::vector<int64_t>{1, 5, 2}));
  EXPECT_EQ(shapeOf(row, {1000 * 4096}), (std::vector<int64_t>{1, 500, 2}));
  EXPECT_EQ(shapeOf(row, {1 << 26}), (std::vector<int64_t>{1, 1024, 8}));
  const ir::Kernel column = reduction(Op::Sum, dtype::f32, false);
  EXPECT_EQ(shapeOf(column, {32 * 32, 13 * 128}), (std::vector<int64_t>{32, 7, 2}));
  EXPECT_EQ(shapeOf(column, {768, 4096}), (std::vector<int64_t>{24, 16, 2}));
  EXPECT_EQ(shapeOf(column, {1 << 14, 9 * 128}), (std::vector<int64_t>{512, 2, 8}));
}

// Threads of large maps take several packs of four, up to four.
TEST(MapLaunches, HaveBlocksForAllMultiprocessors) {
  KernelMaker maker(1, 0);
  const std::vector<ir::Stride> all = {ir::Stride::One};
  maker.beginStage(false);
  maker.store(maker.apply(Op::Exp, {maker.input(dtype::f32, all)}), all);
  const ir::Kernel kernel = maker.kernel();
  const auto blocksOf = [&](int64_t length) { return launchOf(kernel, &length).blocks; };
  EXPECT_EQ(blocksOf(1025), 2);
  EXPECT_EQ(blocksOf(int64_t{1} << 22), 4096);
  EXPECT_EQ(blocksOf(int64_t{1} << 24), 4096);
  EXPECT_EQ(blocksOf(int64_t{1} << 26), 16384);
}

}  // namespace
}  // namespace fl::testing
