// Generated CUDA C++, run on the CPU, against the tile interpreter, bit for bit, with the warps of
// a block in forward and in reversed order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <optional>

#include "fl/base/Error.h"
#include "fl/kernel/cuda/Group.h"
#include "fl/tile/TileInterpreter.h"
#include "tests/Seed.h"
#include "tests/codegen/KernelLaunch.h"
#include "tests/codegen/KernelMaker.h"
#include "tests/codegen/RandomKernel.h"
#include "tests/codegen/cuda/HostModule.h"
#include "tests/codegen/cuda/RowKernels.h"

namespace fl::testing {
namespace {

using codegen::cuda::NamedKernel;
using ir::Op;
using ir::cuda::GatherReport;
using ir::cuda::kWarp;
using ir::cuda::Launch;
using ir::cuda::launchOf;
using ir::cuda::mayBeShort;
using ir::cuda::maySplit;
using ir::cuda::packArguments;
using ir::cuda::PackedLaunch;

// A kernel, its launches and what the tile interpreter made of them.
struct Case {
  std::string name;
  ir::Kernel kernel;
  std::vector<std::unique_ptr<KernelLaunch>> launches;
};

// Many kernels share a module: compiling takes longer than all else.
class Cases {
 public:
  explicit Cases(uint64_t seed) : random_(seed) {}
  std::mt19937_64& random() { return random_; }

  // Neighbours of one kernel share its code.
  void add(const std::string& what, const ir::Kernel& kernel, std::vector<int64_t> extents,
           LaunchOptions options = {}) {
    if (cases_.empty() || !(cases_.back().kernel == kernel)) cases_.push_back({what, kernel, {}});
    cases_.back().launches.push_back(
        std::make_unique<KernelLaunch>(kernel, std::move(extents), random_, options));
  }

  // Launches so far in which blocks shared a sweep.
  int spreads() const { return spreads_; }

  void check() {
    constexpr size_t kTogether = 24;
    for (size_t first = 0; first < cases_.size() && !::testing::Test::HasFailure();
         first += kTogether) {
      const size_t last = std::min(first + kTogether, cases_.size());
      std::vector<NamedKernel> kernels;
      for (size_t i = first; i < last; ++i) {
        kernels.push_back({"k" + std::to_string(i), &cases_[i].kernel});
      }
      const HostModule module(kernels);
      for (size_t i = first; i < last; ++i) {
        for (const auto& launch : cases_[i].launches) {
          check(module, kernels[i - first].name, cases_[i], *launch);
        }
      }
    }
  }

 private:
  void check(const HostModule& module, const std::string& name, const Case& tested,
             const KernelLaunch& launch) {
    const KernelLaunch expected(launch);
    ASSERT_EQ(tile::TileProgram(tested.kernel).run(expected.args(), 0, expected.domain()), -1);
    std::vector<Launch> shapes = {launchOf(tested.kernel, launch.extents().data())};
    if (std::optional<Launch> spread = spreadOut(launch)) shapes.push_back(*spread);
    if (launch.domain() > 0 && mayBeShort(tested.kernel, launch.extents().data())) {
      shapes.push_back({1 + static_cast<int64_t>(random_() % 3), {2 * kWarp, 1, 1}});
    }
    for (const Launch& shape : shapes) {
      for (const bool reversed : {false, true}) {
        const KernelLaunch actual(launch);
        run(module, name, shape, actual, reversed);
        ASSERT_EQ(actual.difference(expected), "")
            << tested.name << ", extents " << ::testing::PrintToString(actual.extents()) << ", "
            << shape.splits << " splits of " << shape.threads[1] << " warps, " << shape.threads[0]
            << " threads along x" << (reversed ? ", reversed" : "");
      }
    }
  }

  // The first sweep of few kept elements by some blocks, whatever there is to do for them.
  std::optional<Launch> spreadOut(const KernelLaunch& launch) {
    constexpr int64_t kFew = 64;
    const ir::Kernel& kernel = launch.kernel();
    const int64_t domain = launch.domain();
    if (!maySplit(kernel) || domain == 0 || domain > kFew) return std::nullopt;
    const int64_t blocks = kernel.rows() ? domain : (domain + kWarp - 1) / kWarp;
    size_t swept = 1;
    for (int axis = 0; axis < kernel.rank; ++axis) {
      if (kernel.isReduced(axis)) swept *= launch.extents()[axis];
    }
    return Launch{blocks,
                  {kWarp, 1 << random_() % 4, 1},
                  static_cast<int>(2 + random_() % 4),
                  kernel.stages[ir::cuda::sharedSweep(kernel)].reduces.size() * domain * swept *
                      sizeof(uint64_t)};
  }

  // The counters are what the launch before has left.
  void run(const HostModule& module, const std::string& name, const Launch& shape,
           const KernelLaunch& launch, bool reversed) {
    std::vector<uint64_t> parts(shape.partBytes / sizeof(uint64_t) + 1, kBehind);
    module.launch({name, &launch.kernel()}, shape,
                  packArguments(launch.kernel(), launch.args(),
                                {nullptr, shape.splits > 1 ? parts.data() : nullptr, counters_}),
                  reversed);
    EXPECT_EQ(parts.back(), kBehind);
    EXPECT_THAT(counters_, ::testing::Each(0));
    spreads_ += shape.splits > 1;
  }
  static constexpr uint64_t kBehind = 0x1234567890abcdef;

  std::mt19937_64 random_;
  std::deque<Case> cases_;
  uint32_t counters_[ir::cuda::kMostShared] = {};
  int spreads_ = 0;
};

TEST(CudaOnHost, RandomKernels) {
  Cases cases(testSeed(51));
  for (int i = 0; i < 144; ++i) {
    const ir::Kernel kernel = drawKernel(cases.random(), {.exact = false});
    for (int launch = 0; launch < 3; ++launch) {
      cases.add("kernel " + std::to_string(i), kernel, drawExtents(kernel, cases.random()),
                {.special = launch > 0, .guardAfter = launch != 1});
    }
  }
  cases.check();
}

TEST(CudaOnHost, EveryOpOfEveryType) {
  Cases cases(1);
  for (int i = 0; i < ir::kOpCount; ++i) {
    const ir::OpInfo& info = ir::opInfo(static_cast<Op>(i));
    if (!ir::isElementwise(info.op) || info.kind == ir::Kind::Cast) continue;
    for (int t = 0; t < kDtypeCount; ++t) {
      const dtype type = static_cast<dtype>(t);
      const bool allowed =
          info.types == ir::Types::All || (info.types == ir::Types::Float) == isFloating(type);
      if (!allowed || (computeType(type) != type && info.kind != ir::Kind::Select)) continue;
      KernelMaker maker(1);
      std::vector<int> args;
      for (int a = 0; a < info.arity; ++a) {
        const bool condition = info.kind == ir::Kind::Select && a == 0;
        args.push_back(maker.input(condition ? dtype::b8 : type, {kOne}));
      }
      maker.beginStage(false);
      maker.store(maker.apply(info.op, args), {kOne});
      cases.add(detail::concat(info.name, " of ", type), maker.kernel(), {4001},
                {.special = true, .low = 2 * info.lo, .high = 2 * info.hi});
    }
  }
  cases.check();
}

TEST(CudaOnHost, EveryCast) {
  Cases cases(2);
  for (int from = 0; from < kDtypeCount; ++from) {
    KernelMaker maker(1);
    const int x = maker.input(static_cast<dtype>(from), {kOne});
    maker.beginStage(false);
    for (int to = 0; to < kDtypeCount; ++to) {
      maker.store(maker.cast(x, static_cast<dtype>(to)), {kOne});
    }
    cases.add(detail::concat("cast of ", static_cast<dtype>(from)), maker.kernel(), {3001},
              {.special = true, .low = -1e5, .high = 1e5});
  }
  cases.check();
}

// More parts of a row or column than warps, turns in groups, tails of every length.
TEST(CudaOnHost, Reductions) {
  Cases cases(3);
  for (const Op op : {Op::Sum, Op::Amax, Op::Amin}) {
    for (const dtype type : {dtype::f32, dtype::f64, dtype::s16, dtype::s64, dtype::b8}) {
      const auto reduction = [&](int rank, uint32_t reduced, std::vector<ir::Stride> in,
                                 std::vector<ir::Stride> out) {
        KernelMaker maker(rank, reduced);
        const int x = maker.input(type, std::move(in));
        maker.beginStage(true);
        const int total = maker.total(maker.reduce(op, x), type);
        maker.beginStage(false);
        maker.store(total, std::move(out));
        return maker.kernel();
      };
      const std::string what = detail::concat(ir::opName(op), " of ", type);
      const ir::Kernel row = reduction(2, 1, {kOne, kAny}, {kZero, kAny});
      for (const int64_t length : {0, 1, 15, 16, 31, 32, 33, 47, 4095, 4096, 4129, 50000}) {
        cases.add(what + " of rows", row, {length, 3}, {.special = length % 2 == 1});
      }
      cases.add(what + " of all", reduction(1, 1, {kOne}, {kZero}), {70001});
      const ir::Kernel column = reduction(2, 2, {kOne, kAny}, {kOne, kZero});
      for (const int64_t length : {0, 1, 127, 128, 129, 1025}) {
        cases.add(what + " of columns", column, {37, length});
      }
      const ir::Kernel turns = reduction(3, 5, {kOne, kAny, kAny}, {kZero, kOne, kZero});
      for (const int64_t length : {0, 1, 50, 3000}) {
        cases.add(what + " of rows in turns", turns, {length, 2, 130});
      }
      cases.add(what + " of columns in turns",
                reduction(4, 10, {kOne, kAny, kAny, kAny}, {kOne, kZero, kAny, kZero}),
                {9, 30, 4, 70});
    }
  }
  cases.check();
}

// Launches of other extents and strides than their neighbours', one of a single block.
TEST(CudaOnHost, GroupsOfLaunches) {
  std::mt19937_64 random(testSeed(52));
  for (int kernels = 0; kernels < 12;) {
    const ir::Kernel kernel = drawKernel(random, {.exact = false});
    if (!ir::cuda::mayGroup(kernel)) continue;
    const int most = 2 << kernels++ % 3;
    const HostModule module(std::vector<NamedKernel>{{"k", &kernel, most}});
    for (int size = most / 2 + 1; size <= most; ++size) {
      std::deque<KernelLaunch> drawn;
      while (drawn.size() < static_cast<size_t>(size)) {
        KernelLaunch launch(kernel, drawExtents(kernel, random), random);
        if (launch.domain() > 0) drawn.emplace_back(launch);
      }
      for (const bool reversed : {false, true}) {
        std::deque<KernelLaunch> actual(drawn.begin(), drawn.end());
        std::vector<PackedLaunch> packed;
        for (const KernelLaunch& launch : actual) {
          packed.push_back({launchOf(kernel, launch.extents().data()),
                            packArguments(kernel, launch.args(), {})});
        }
        const PackedLaunch group = packGroup(packed, most);
        module.launch("k", group.shape, group.words, reversed);
        for (int i = 0; i < size; ++i) {
          const KernelLaunch expected(drawn[i]);
          tile::TileProgram(kernel).run(expected.args(), 0, expected.domain());
          ASSERT_EQ(actual[i].difference(expected), "") << printKernel(kernel, "k") << i;
        }
      }
    }
  }
}

TEST(Groups, FillAParameter) {
  using ir::cuda::kParameterBytes;
  for (const size_t words : {3, 13, 50, 200, 1000, 2040, 4000}) {
    const size_t most = ir::cuda::mostLaunches(words);
    EXPECT_EQ(most & (most - 1), 0u);
    const auto bytes = [&](size_t launches) { return 8 * (launches + 1 + launches * words); };
    EXPECT_TRUE(most == 1 || bytes(most) <= kParameterBytes) << words;
    EXPECT_GT(bytes(2 * most), kParameterBytes) << words;
  }
  EXPECT_EQ(ir::cuda::mostLaunches(13), 256);
  const std::vector<PackedLaunch> launches = {{{5, {256, 1, 1}}, {1, 2}},
                                              {{3, {256, 1, 1}}, {3, 4}}};
  const PackedLaunch group = packGroup(launches, 4);
  EXPECT_EQ(group.shape.blocks, 8);
  EXPECT_EQ(group.shape.threads[0], 256);
  EXPECT_EQ(group.words, (std::vector<uint64_t>{0, 5, 8, 8, 8, 1, 2, 3, 4, 0, 0, 0, 0}));
}

// Mean and variance, then what is made of each element and of the kept ones: the first sweep has
// several reductions and a store, the last block goes on with others.
ir::Kernel momentsKernel(int rank, uint32_t reduced, std::vector<ir::Stride> all,
                         std::vector<ir::Stride> kept) {
  KernelMaker maker(rank, reduced);
  const int x = maker.input(dtype::f32, all), y = maker.input(dtype::f32, kept);
  const int scaled = maker.apply(Op::Mul, {x, y});
  maker.beginStage(true);
  maker.store(scaled, all);
  const int sum = maker.total(maker.reduce(Op::Sum, scaled), dtype::f32);
  const int largest = maker.total(maker.reduce(Op::Amax, maker.cast(x, dtype::s16)), dtype::s16);
  const int wide = maker.total(maker.reduce(Op::Sum, maker.cast(x, dtype::f64)), dtype::f64);
  const int off = maker.apply(Op::Sub, {scaled, sum});
  maker.beginStage(false);
  maker.store(largest, kept);
  maker.beginStage(true);
  maker.store(off, all);
  const int square =
      maker.total(maker.reduce(Op::Sum, maker.apply(Op::Mul, {off, off})), dtype::f32);
  maker.beginStage(false);
  maker.store(maker.apply(Op::Add, {square, maker.cast(wide, dtype::f32)}), kept);
  return maker.kernel();
}

// As many blocks as launches have them: some groups of kept elements, uneven splits and tails.
TEST(CudaOnHost, SweepsThatBlocksShare) {
  Cases cases(7);
  const ir::Kernel row = momentsKernel(2, 1, {kOne, kAny}, {kZero, kAny});
  for (const int64_t length : {16 * 4096 - 1, 16 * 4096 + 1, 17 * 4096 + 7, 40 * 4096 + 31}) {
    for (const int64_t rows : {1, 3}) cases.add("moments of rows", row, {length, rows});
  }
  const ir::Kernel column = momentsKernel(2, 2, {kOne, kAny}, {kOne, kZero});
  for (const int64_t length : {16 * 128, 17 * 128 + 1, 50 * 128 - 3}) {
    for (const int64_t columns : {1, 32, 75})
      cases.add("moments of columns", column, {columns, length});
  }
  cases.add("moments of turns", momentsKernel(3, 5, {kOne, kAny, kAny}, {kZero, kOne, kZero}),
            {1000, 3, 130});
  cases.add("moments of columns in turns",
            momentsKernel(4, 10, {kOne, kAny, kAny, kAny}, {kOne, kZero, kAny, kZero}),
            {9, 30, 4, 150});
  const auto launches = [&](const ir::Kernel& kernel, std::vector<int64_t> extents) {
    return launchOf(kernel, extents.data()).splits;
  };
  EXPECT_EQ(launches(row, {16 * 4096, 1}), 2);
  EXPECT_EQ(launches(row, {15 * 4096, 1}), 1);
  EXPECT_EQ(launches(row, {1 << 26, 1}), 1024);
  EXPECT_EQ(launches(row, {1 << 26, 512}), 2);
  EXPECT_EQ(launches(row, {1 << 26, 513}), 1);
  EXPECT_EQ(launches(column, {75, 50 * 128 - 3}), 7);
  EXPECT_EQ(launches(column, {1 << 14, 1 << 14}), 2);
  EXPECT_EQ(launches(column, {(1 << 14) + 1, 1 << 14}), 1);
  cases.check();
  EXPECT_EQ(cases.spreads(), 2 * (19 + 16));  // as launchOf() says, and of few others
}

// Several sweeps, the last of which writes over what the first has read.
// A block that went on before the others had read the row would write over it, too.
TEST(CudaOnHost, SeveralSweepsInPlace) {
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16}) {
    const ir::Kernel kernel = softmaxKernel(type);
    const HostModule module({{"softmax", &kernel}});
    for (const std::vector<int64_t>& extents :
         {std::vector<int64_t>{100, 19}, std::vector<int64_t>{40000, 2},
          std::vector<int64_t>{70001, 2}}) {
      std::mt19937_64 random(4);
      KernelLaunch expected(kernel, extents, random);
      KernelLaunch actual(expected);
      expected.share(1, 0);
      actual.share(1, 0);
      tile::TileProgram(kernel).run(expected.args(), 0, expected.domain());
      const Launch shape = launchOf(kernel, extents.data());
      std::vector<uint64_t> parts(shape.partBytes / sizeof(uint64_t));
      std::vector<uint32_t> counters(ir::cuda::kMostShared);
      module.launch({"softmax", &kernel}, shape,
                    packArguments(kernel, actual.args(), {nullptr, parts.data(), counters.data()}),
                    false);
      EXPECT_EQ(actual.difference(expected), "");
    }
  }
}

// Rows of whole and of part accesses, of one part and several, and too long to wait.
TEST(CudaOnHost, RowsInSharedMemory) {
  Cases cases(6);
  const auto add = [&](const std::string& what, const ir::Kernel& kernel, int64_t longest) {
    for (const int64_t length : {int64_t{1}, int64_t{31}, int64_t{100}, int64_t{1001},
                                 int64_t{4096}, int64_t{4100}, longest, longest + 1}) {
      const std::vector<int64_t> extents = {length, length > 4100 ? 3 : 11};
      EXPECT_EQ(launchOf(kernel, extents.data()).sharedBytes > 0, length <= longest) << what;
      cases.add(what, kernel, extents, {.irregular = length == 1001, .special = length == 100});
    }
  };
  add("softmax", softmaxKernel(dtype::f32), 24576);
  add("softmax of f64", softmaxKernel(dtype::f64), 12288);
  add("softmax of f16", softmaxKernel(dtype::f16), 16384);
  add("softmax under strides", softmaxKernel(dtype::f32, {kAny, kAny}), 24576);
  add("softmax and gradient", softmaxGradientKernel(), 12288);
  add("dropout and layer norm", dropoutNormKernel(), 19648);
  add("layer norm's gradient", normGradientKernel(), 12288);
  for (const int64_t length : {7, 64, 5000}) {
    cases.add("softmax in turns", softmaxKernel(dtype::f32, {kOne, kAny, kAny}, 5), {length, 3, 4});
  }
  cases.check();
}

// A device with less shared memory takes it away; teams of fewer blocks take several rows in turn.
TEST(CudaOnHost, RowsInOtherLaunches) {
  const ir::Kernel kernel = softmaxGradientKernel();
  const HostModule module({{"softmax", &kernel}});
  const std::vector<int64_t> extents = {700, 5};
  std::mt19937_64 random(7);
  const KernelLaunch drawn(kernel, extents, random), expected(drawn);
  tile::TileProgram(kernel).run(expected.args(), 0, expected.domain());
  ir::cuda::Launch without = launchOf(kernel, extents.data()), inTurn = without;
  EXPECT_GT(without.sharedBytes, 0);
  without.sharedBytes = 0;
  inTurn.blocks = 1;
  for (const ir::cuda::Launch& launch : {without, inTurn}) {
    for (const bool reversed : {false, true}) {
      const KernelLaunch actual(drawn);
      module.launch({"softmax", &kernel}, launch, packArguments(kernel, actual.args(), {}),
                    reversed);
      EXPECT_EQ(actual.difference(expected), "");
    }
  }
}

// Indices are looked at, and reported, by the sweep that looks up.
TEST(CudaOnHost, WhatWasLookedUpWaits) {
  constexpr int64_t kTable = 50, kX = 37, kY = 7;
  KernelMaker maker(2, 1);
  const int from = maker.input(dtype::s64, kRow), bound = maker.scalar(dtype::s64);
  const int found = maker.gather(dtype::f64, from, from, bound);
  maker.beginStage(true);
  const int largest = maker.total(maker.reduce(Op::Amax, found), dtype::f64);
  maker.beginStage(true);
  const int below = maker.reduce(Op::Sum, maker.apply(Op::Sub, {largest, found}));
  maker.beginStage(false);
  maker.store(maker.total(below, dtype::f64), {kZero, kOne});
  const ir::Kernel& kernel = maker.kernel();
  const HostModule module({{"gather", &kernel}});
  std::vector<double> table(kTable), result(kY), expected(kY);
  for (int64_t i = 0; i < kTable; ++i) table[i] = static_cast<double>(i);
  std::vector<int64_t> index(kX * kY);
  for (int64_t i = 0; i < kX * kY; ++i) index[i] = i * i % kTable;
  for (int64_t y = 0; y < kY; ++y) {
    const auto row = index.begin() + y * kX;
    for (int64_t x = 0; x < kX; ++x) {
      expected[y] += static_cast<double>(*std::max_element(row, row + kX) - row[x]);
    }
  }
  const int64_t extents[] = {kX, kY}, strides[] = {1, kX, 0, 0, 0, 1};
  const uint64_t size = kTable;
  void* data[] = {index.data(), table.data(), result.data()};
  const ir::KernelArgs args{data, extents, strides, &size};
  const auto run = [&] {
    const ir::cuda::Launch launch = launchOf(kernel, extents);
    EXPECT_EQ(launch.sharedBytes, 8 * 8 * 48);
    GatherReport report;
    module.launch({"gather", &kernel}, launch, packArguments(kernel, args, {&report}), false);
    return report;
  };
  EXPECT_EQ(run().gather, -1);
  EXPECT_EQ(result, expected);
  index[kX * kY - 1] = kTable;
  EXPECT_EQ(run().bad.index, kTable);
}

TEST(CudaOnHost, RandomNumbers) {
  Cases cases(5);
  for (const dtype type : {dtype::f32, dtype::f64, dtype::u32}) {
    KernelMaker maker(2);
    const int seed = maker.scalar(dtype::u64), offset = maker.scalar(dtype::u64);
    const int drawn = maker.random(type, seed, offset, maker.index({kOne, kAny}));
    maker.beginStage(false);
    maker.store(drawn, {kOne, kAny});
    if (type != dtype::u32) {
      maker.store(maker.normal(drawn, drawn), {kOne, kAny});
    }
    cases.add(detail::concat("rand of ", type), maker.kernel(), {101, 7});
  }
  cases.check();
}

ir::Kernel gatherKernel(dtype type) {
  KernelMaker maker(2);
  const int index = maker.input(dtype::s64, {kOne, kZero});
  const int bound = maker.scalar(dtype::s64);
  const int line = maker.index({kZero, kAny});
  const int element = maker.apply(Op::Add, {index, line});
  const int found = maker.gather(type, element, index, bound);
  maker.beginStage(false);
  maker.store(found, {kOne, kAny});
  return maker.kernel();
}

TEST(CudaOnHost, Gathers) {
  constexpr int64_t kRows = 50, kLines = 5, kFound = 33;
  const ir::Kernel kernel = gatherKernel(dtype::f32);
  const HostModule module({{"gather", &kernel}});
  std::vector<float> table(kRows * kLines), result(kFound * kLines);
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<float>(i);
  std::vector<int64_t> index(kFound);
  for (int64_t i = 0; i < kFound; ++i) index[i] = i * 7 % kRows;
  const int64_t extents[] = {kFound, kLines};
  const int64_t strides[] = {1, 0, 0, kRows, 0, 0, 1, kFound};
  const uint64_t bound = kRows;
  void* data[] = {index.data(), nullptr, table.data(), result.data()};
  const ir::KernelArgs args{data, extents, strides, &bound};
  const auto run = [&] {
    GatherReport report;
    module.launch({"gather", &kernel}, launchOf(kernel, extents),
                  packArguments(kernel, args, {&report}), false);
    return report;
  };
  EXPECT_EQ(run().gather, -1);
  for (int64_t j = 0; j < kLines; ++j) {
    for (int64_t i = 0; i < kFound; ++i) {
      ASSERT_EQ(result[i + j * kFound], table[index[i] + j * kRows]);
    }
  }
  for (const int64_t bad : {int64_t{-1}, kRows, INT64_MAX, ir::kNanIndex}) {
    index[kFound - 1] = bad;
    const GatherReport report = run();
    EXPECT_EQ(report.gather, 0);
    EXPECT_EQ(report.bad.index, bad);
    EXPECT_EQ(report.bad.bound, kRows);
  }
}

// The sum of what each line of a sweep looks up, along rows and along columns.
// The second length is one that blocks share.
TEST(CudaOnHost, GathersInSweeps) {
  constexpr int64_t kTable = 50, kX = 37;
  std::vector<double> table(kTable);
  for (int64_t i = 0; i < kTable; ++i) table[i] = static_cast<double>(i * i);
  for (const auto& [reduced, length] : {std::pair{1u, int64_t{70}}, {2u, 70}, {2u, 9 * 128}}) {
    std::vector<int64_t> index(kX * length);
    for (size_t i = 0; i < index.size(); ++i) index[i] = i * 7 % kTable;
    KernelMaker maker(2, reduced);
    const int from = maker.input(dtype::s64, {kOne, kAny}), bound = maker.scalar(dtype::s64);
    const int found = maker.gather(dtype::f64, from, from, bound);
    maker.beginStage(true);
    const int total = maker.total(maker.reduce(Op::Sum, found), dtype::f64);
    maker.beginStage(false);
    maker.store(total, {reduced == 1 ? kZero : kOne, reduced == 1 ? kAny : kZero});
    const ir::Kernel& kernel = maker.kernel();
    const HostModule module({{"gather", &kernel}});
    std::vector<double> result(reduced == 1 ? length : kX), expected(result.size());
    for (size_t i = 0; i < index.size(); ++i)
      expected[reduced == 1 ? i / kX : i % kX] += table[index[i]];
    const int64_t extents[] = {kX, length}, strides[] = {1, kX, 0, 0, reduced == 2, reduced == 1};
    const uint64_t size = kTable;
    void* data[] = {index.data(), table.data(), result.data()};
    const ir::KernelArgs args{data, extents, strides, &size};
    const ir::cuda::Launch shape = launchOf(kernel, extents);
    EXPECT_EQ(shape.splits > 1, length > 70);
    const auto run = [&](bool reversed) {
      GatherReport report;
      std::vector<uint64_t> parts(shape.partBytes / sizeof(uint64_t));
      std::vector<uint32_t> counters(ir::cuda::kMostShared);
      module.launch({"gather", &kernel}, shape,
                    packArguments(kernel, args, {&report, parts.data(), counters.data()}),
                    reversed);
      return report;
    };
    for (const bool reversed : {false, true}) {
      std::ranges::fill(result, -1);
      EXPECT_EQ(run(reversed).gather, -1);
      EXPECT_EQ(result, expected) << reversed;  // whole numbers, so in any order
    }
    index.back() = kTable;
    EXPECT_EQ(run(false).bad.index, kTable);
  }
}

// Indices beyond 32 bits, which no test has memory for.
TEST(CudaOnHost, Quotients) {
  const HostModule module(codegen::cuda::emitCuda({}) +
                          "struct k_arguments { s64 x, y; s64* result; };\n"
                          "extern \"C\" __global__ void k(const k_arguments a) { *a.result = "
                          "quotient(a.x, a.y); }\n");
  const int64_t numbers[] = {0,
                             1,
                             3,
                             7,
                             1000,
                             INT32_MAX,
                             UINT32_MAX,
                             1LL << 32,
                             1LL << 40,
                             (1LL << 40) - 1,
                             3LL << 35,
                             INT64_MAX,
                             INT64_MAX / 3,
                             123456789012345};
  for (const int64_t x : numbers) {
    for (const int64_t y : numbers) {
      if (y == 0) continue;
      int64_t result = -1;
      module.launch(
          "k", {1, {1, 1, 1}},
          {static_cast<uint64_t>(x), static_cast<uint64_t>(y), reinterpret_cast<uint64_t>(&result)},
          false);
      EXPECT_EQ(result, x / y) << x << " / " << y;
    }
  }
}

}  // namespace
}  // namespace fl::testing
