// Rows that a thread takes alone, run on the CPU, against the tile interpreter, bit for bit; and
// which launches have them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "fl/kernel/cuda/Launch.h"
#include "fl/tile/TileInterpreter.h"
#include "tests/Seed.h"
#include "tests/codegen/KernelLaunch.h"
#include "tests/codegen/KernelMaker.h"
#include "tests/codegen/cuda/HostModule.h"
#include "tests/codegen/cuda/RowKernels.h"

namespace fl::testing {
namespace {

using ir::Op;
using ir::cuda::kBlockThreads;
using ir::cuda::kWarp;
using ir::cuda::Launch;
using ir::cuda::launchOf;
using ir::cuda::mayBeShort;
using ir::cuda::packArguments;
using ir::cuda::variantOf;
using ir::cuda::variantsOf;
using ::testing::ElementsAre;

const std::vector<ir::Stride> kTurns = {kAny, kAny, kOne};

ir::Kernel reductionKernel(Op op, dtype type, std::vector<ir::Stride> in, uint32_t reduced) {
  const int rank = static_cast<int>(in.size());
  KernelMaker maker(rank, reduced);
  const int x = maker.input(type, in);
  maker.beginStage(true);
  const int total = maker.total(maker.reduce(op, x), type);
  maker.beginStage(false);
  std::vector<ir::Stride> out = std::move(in);
  for (int axis = 0; axis < rank; ++axis) {
    if (reduced >> axis & 1) out[axis] = kZero;
  }
  maker.store(total, out);
  return maker.kernel();
}

// Where the largest element of a window is first, as pooling's gradient asks.
ir::Kernel firstLargestKernel() {
  KernelMaker maker(3, 3);
  const int x = maker.input(dtype::f32, kTurns), number = maker.index({kOne, kAny, kZero});
  maker.beginStage(true);
  const int largest = maker.total(maker.reduce(Op::Amax, x), dtype::f32);
  const int nan = maker.apply(Op::IsNan, {x}), same = maker.apply(Op::Eq, {x, largest});
  const int is = maker.apply(Op::LogicalOr, {same, nan}), none = maker.scalar(dtype::s64);
  const int where = maker.apply(Op::Where, {is, number, none});
  maker.beginStage(true);
  const int first = maker.total(maker.reduce(Op::Amin, where), dtype::s64);
  maker.beginStage(false);
  maker.store(first, {kZero, kZero, kOne});
  return maker.kernel();
}

struct ShortRows : ::testing::Test {
  std::mt19937_64 random = std::mt19937_64(testSeed(54));

  // By fewer threads than there are rows, some of which find none, and with the other warp first.
  void check(const HostModule& module, const std::string& name, const KernelLaunch& drawn) {
    const KernelLaunch expected(drawn);
    tile::TileProgram(drawn.kernel()).run(expected.args(), 0, expected.domain());
    for (const bool reversed : {false, true}) {
      for (const int64_t blocks : {1, 2}) {
        const KernelLaunch actual(drawn);
        module.launch(name, {blocks, {2 * kWarp, 1, 1}},
                      packArguments(actual.kernel(), actual.args(), {}), reversed);
        ASSERT_EQ(actual.difference(expected), "")
            << printKernel(actual.kernel(), name) << ::testing::PrintToString(actual.extents());
      }
    }
  }

  void checkAll(const std::deque<ir::Kernel>& kernels,
                const std::vector<std::vector<int64_t>>& extents) {
    std::vector<codegen::cuda::NamedKernel> named;
    for (const ir::Kernel& kernel : kernels) {
      named.push_back({"k" + std::to_string(named.size()), &kernel});
    }
    const HostModule module(named);
    for (const auto& [name, kernel, launches] : named) {
      for (const auto& each : extents) {
        ASSERT_TRUE(mayBeShort(*kernel, each.data()));
        for (const bool special : {false, true}) {
          check(module, name, KernelLaunch(*kernel, each, random, {.special = special}));
        }
      }
    }
  }
};

std::vector<std::vector<int64_t>> everyLength() {
  std::vector<std::vector<int64_t>> extents;
  for (int64_t length = 0; length <= 16; ++length) extents.push_back({length, 150});
  return extents;
}

TEST_F(ShortRows, HaveTheTreesBits) {
  std::deque<ir::Kernel> kernels;
  for (const Op op : {Op::Sum, Op::Amax, Op::Amin}) {
    for (const dtype type :
         {dtype::f32, dtype::f64, dtype::s16, dtype::s64, dtype::u8, dtype::b8}) {
      kernels.push_back(reductionKernel(op, type, {kOne, kAny}, 1));
    }
  }
  checkAll(kernels, everyLength());
}

TEST_F(ShortRows, OfSeveralSweeps) {
  const std::vector<ir::Kernel> kernels = rowKernels();
  std::deque<ir::Kernel> ofRankTwo;
  for (const ir::Kernel& kernel : kernels) {
    if (kernel.rank == 2) ofRankTwo.push_back(kernel);
  }
  ASSERT_GT(ofRankTwo.size(), 4u);
  checkAll(ofRankTwo, everyLength());
}

TEST_F(ShortRows, InTurns) {
  checkAll({reductionKernel(Op::Sum, dtype::f32, kTurns, 3),
            reductionKernel(Op::Amax, dtype::f32, kTurns, 3), firstLargestKernel()},
           {{2, 2, 150}, {3, 3, 150}, {4, 1, 70}, {7, 7, 70}, {16, 16, 70}, {5, 0, 70}});
  checkAll({reductionKernel(Op::Sum, dtype::f32, {kOne, kAny, kAny, kAny}, 11),
            softmaxKernel(dtype::f32, {kOne, kAny, kAny, kAny}, 5)},
           {{3, 2, 11, 5}, {16, 4, 3, 3}});
}

TEST_F(ShortRows, InPlace) {
  const ir::Kernel kernel = softmaxKernel(dtype::f32);
  const HostModule module({{"softmax", &kernel}});
  KernelLaunch expected(kernel, {13, 300}, random);
  KernelLaunch actual(expected);
  expected.share(1, 0);
  actual.share(1, 0);
  tile::TileProgram(kernel).run(expected.args(), 0, expected.domain());
  module.launch({"softmax", &kernel}, {2, {kBlockThreads, 1, 1}},
                packArguments(kernel, actual.args(), {}), false);
  EXPECT_EQ(actual.difference(expected), "");
}

// A thread without a row looks up what the last one does, and reports nothing else.
TEST_F(ShortRows, LookUp) {
  constexpr int64_t kTable = 50, kX = 5, kY = 70;
  KernelMaker maker(2, 1);
  const int from = maker.input(dtype::s64, kRow), bound = maker.scalar(dtype::s64);
  const int found = maker.gather(dtype::f64, from, from, bound);
  maker.beginStage(true);
  const int total = maker.total(maker.reduce(Op::Sum, found), dtype::f64);
  maker.beginStage(false);
  maker.store(total, {kZero, kOne});
  const ir::Kernel& kernel = maker.kernel();
  const HostModule module({{"gather", &kernel}});
  std::vector<double> table(kTable), result(kY), expected(kY);
  for (int64_t i = 0; i < kTable; ++i) table[i] = static_cast<double>(i * i);
  std::vector<int64_t> index(kX * kY);
  for (int64_t i = 0; i < kX * kY; ++i) {
    index[i] = i * 7 % kTable;
    expected[i / kX] += table[index[i]];
  }
  const int64_t extents[] = {kX, kY}, strides[] = {1, kX, 0, 0, 0, 1};
  const uint64_t size = kTable;
  void* data[] = {index.data(), table.data(), result.data()};
  const ir::KernelArgs args{data, extents, strides, &size};
  const auto run = [&] {
    ir::cuda::GatherReport report;
    module.launch({"gather", &kernel}, {1, {kBlockThreads, 1, 1}},
                  packArguments(kernel, args, {&report}), false);
    return report;
  };
  EXPECT_EQ(run().gather, -1);
  EXPECT_EQ(result, expected);
  index[kX * kY - 1] = kTable;
  EXPECT_EQ(run().bad.index, kTable);
}

TEST_F(ShortRows, AreManyAndOfSixteenElementsATurn) {
  const ir::Kernel row = softmaxKernel(dtype::f32);
  const ir::Kernel turns = reductionKernel(Op::Sum, dtype::f32, kTurns, 3);
  const auto threads = [](const ir::Kernel& kernel, std::vector<int64_t> extents) {
    const Launch launch = launchOf(kernel, extents.data());
    return std::vector<int64_t>{launch.blocks, launch.threads[0], launch.threads[2],
                                launch.sharedBytes};
  };
  constexpr int64_t kMany = 1 << 14;
  EXPECT_THAT(threads(row, {16, kMany}), ElementsAre(kMany / kBlockThreads, kBlockThreads, 1, 0));
  EXPECT_THAT(threads(row, {16, kMany + 1}),
              ElementsAre(kMany / kBlockThreads + 1, kBlockThreads, 1, 0));
  EXPECT_THAT(threads(row, {16, kMany - 1}), ElementsAre(kMany / 8, kWarp, 8, 8 * 64));
  EXPECT_THAT(threads(row, {17, kMany}), ElementsAre(kMany / 8, kWarp, 8, 8 * 128));
  EXPECT_THAT(threads(turns, {16, 16, kMany})[1], kBlockThreads);
  EXPECT_THAT(threads(turns, {16, 17, kMany})[1], kWarp);
  EXPECT_THAT(threads(reductionKernel(Op::Sum, dtype::f32, {kOne, kAny}, 2), {kMany, 4})[1], kWarp);
}

TEST_F(ShortRows, HaveAFunctionBesideThoseOfOtherLaunches) {
  using enum ir::cuda::Variant;
  const ir::Kernel row = softmaxKernel(dtype::f32);
  EXPECT_THAT(variantsOf(row), ElementsAre(Usual, Shared, Short));
  EXPECT_THAT(variantsOf(reductionKernel(Op::Sum, dtype::f32, {kOne, kAny}, 1)),
              ElementsAre(Usual, Short));
  const ir::Kernel columns = reductionKernel(Op::Sum, dtype::f32, {kOne, kAny}, 2);
  EXPECT_THAT(variantsOf(columns), ElementsAre(Usual));
  const auto functionOf = [&](std::vector<int64_t> extents) {
    return functionName("k", variantOf(row, launchOf(row, extents.data())));
  };
  EXPECT_EQ(functionOf({16, 1 << 14}), "k_short");
  EXPECT_EQ(functionOf({17, 1 << 14}), "k_shared");
  EXPECT_EQ(functionOf({1 << 20, 1}), "k");
  EXPECT_EQ(variantOf(columns, {1, {kBlockThreads, 1, 1}}), Usual);
}

}  // namespace
}  // namespace fl::testing
