// Row and column kernels: every extent that the reduction trees treat in its own way, several
// stages, several axes; against the reference, bit for bit.
#include <cmath>

#include "fl/codegen/cpu/KernelPlan.h"
#include "tests/codegen/EmitterHarness.h"

namespace fl::testing {
namespace {

using ir::Op;

const std::vector<int64_t> kRowExtents = {0, 1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 65, 1000};

std::vector<ir::Stride> classes(int rank, ir::Stride first, ir::Stride rest) {
  std::vector<ir::Stride> strides(rank, rest);
  strides[0] = first;
  return strides;
}

// Classes of an output of one element each kept element.
std::vector<ir::Stride> keptClasses(const ir::Kernel& kernel) {
  std::vector<ir::Stride> strides;
  for (int axis = 0; axis < kernel.rank; ++axis) {
    strides.push_back(kernel.isReduced(axis) ? kZero : axis == 0 ? kOne : kAny);
  }
  return strides;
}

// sum, amin and amax of x * y, and of x alone.
ir::Kernel reductions(int rank, uint32_t reduced, dtype type, ir::Stride first) {
  KernelMaker maker(rank, reduced);
  const int x = maker.input(type, classes(rank, first, kAny));
  const int y = maker.input(type, classes(rank, kOne, kZero));
  const int product = maker.apply(Op::Mul, {x, y});
  maker.beginStage(true);
  std::vector<int> totals;
  for (Op op : {Op::Sum, Op::Amin, Op::Amax}) maker.reduce(op, product);
  maker.reduce(Op::Sum, x);
  for (int r = 0; r < 4; ++r) totals.push_back(maker.total(r, type));
  maker.beginStage(false);
  for (int total : totals) maker.store(total, keptClasses(maker.kernel()));
  return maker.kernel();
}

// exp stands for any function: 1 / (1 + x^2) keeps the comparison exact.
int bump(KernelMaker& maker, int x, int one) {
  return maker.apply(Op::Div, {one, maker.apply(Op::Add, {one, maker.apply(Op::Mul, {x, x})})});
}

// Three sweeps as in softmax; the second one stores too, and a stage without sweep follows.
ir::Kernel normalization(int rank, uint32_t reduced) {
  KernelMaker maker(rank, reduced);
  const auto all = classes(rank, kOne, kAny);
  const int x = maker.input(dtype::f32, all), one = maker.scalar(dtype::f32);
  const int perKept = maker.input(dtype::f32, keptClasses(maker.kernel()));
  maker.beginStage(true);
  maker.reduce(Op::Amax, x);
  const int shifted = maker.apply(Op::Sub, {x, maker.total(0, dtype::f32)});
  const int part = bump(maker, shifted, one);
  maker.beginStage(true);
  maker.reduce(Op::Sum, part);
  maker.store(shifted, all);
  const int inverse = maker.apply(Op::Div, {perKept, maker.total(1, dtype::f32)});
  maker.beginStage(false);
  maker.store(inverse, keptClasses(maker.kernel()));
  maker.beginStage(true);
  maker.store(maker.apply(Op::Mul, {part, inverse}), all);
  return maker.kernel();
}

void check(const ir::Kernel& kernel, const std::vector<std::vector<int64_t>>& extents,
           std::mt19937_64& random, LaunchOptions options = {},
           ir::Stores stores = ir::Stores::Cached) {
  for (const ir::Target& target : targets()) {
    const auto code = compile(kernel, target, stores);
    for (const auto& each : extents) {
      const KernelLaunch expected(kernel, each, random, options);
      const KernelLaunch actual(expected);
      runReference(expected);
      run(*code, actual);
      EXPECT_EQ(actual.difference(expected), "")
          << target.vectorBits << " bits, extents " << ::testing::PrintToString(each);
    }
  }
}

TEST(Reduction, RowsOfEveryLength) {
  std::mt19937_64 random(testSeed(21));
  std::vector<std::vector<int64_t>> extents;
  for (int64_t n = 0; n <= 70; ++n) extents.push_back({n, 3});
  extents.push_back({1000, 3});
  for (dtype type :
       {dtype::f32, dtype::f64, dtype::s32, dtype::s64, dtype::u8, dtype::u64, dtype::b8}) {
    check(reductions(2, 1, type, kOne), extents, random, {.special = type != dtype::f32});
    check(reductions(2, 1, type, kAny), extents, random);
  }
}

// Short rows are taken kLanes at a time, as many tiles of them as there are, and the rest.
TEST(Reduction, ShortRowsSideBySide) {
  std::mt19937_64 random(testSeed(35));
  std::vector<std::vector<int64_t>> extents;
  for (int64_t n = 0; n <= ir::kLanes; ++n) extents.push_back({n, n % 3 == 0 ? 300 : 16 + n});
  for (dtype type : {dtype::f32, dtype::f64, dtype::s16, dtype::s64, dtype::u8, dtype::b8}) {
    for (ir::Stride first : {kOne, kAny}) {
      check(reductions(2, 1, type, first), extents, random, {.special = type != dtype::f32},
            ir::Stores::Across);
    }
  }
  check(normalization(2, 1), extents, random, {}, ir::Stores::Across);
  for (auto& each : extents) each.push_back(2);
  check(normalization(3, 1), extents, random, {}, ir::Stores::Across);
}

// Of two vectors of bf16 one takes every second element.
TEST(Reduction, PairsOfBfloat16FollowTheTree) {
  std::mt19937_64 random(testSeed(34));
  for (int rank : {2, 3}) {
    KernelMaker maker(rank, rank == 2 ? 1 : 5);
    const int x = maker.cast(maker.input(dtype::bf16, classes(rank, kOne, kAny)), dtype::f32);
    maker.beginStage(true);
    maker.reduce(Op::Sum, maker.apply(Op::Mul, {x, x}));
    maker.reduce(Op::Amax, x);
    const int sum = maker.total(0, dtype::f32), largest = maker.total(1, dtype::f32);
    maker.beginStage(false);
    for (int total : {sum, largest}) maker.store(total, keptClasses(maker.kernel()));
    std::vector<std::vector<int64_t>> extents;
    for (int64_t n : {0, 1, 31, 32, 33, 65, 1000, 4096, 4129, 9000}) {
      extents.push_back(rank == 2 ? std::vector<int64_t>{n, 3} : std::vector<int64_t>{n, 2, 5});
    }
    check(maker.kernel(), extents, random);
    for (const ir::Target& target : targets()) {
      for (bool findsNan : {false, true}) {
        const auto plan =
            codegen::cpu::planKernel(maker.kernel(), target, ir::Stores::Cached, findsNan);
        EXPECT_EQ(plan.everySecond[0], target.vectorBits == 512 && !findsNan);
      }
    }
  }
}

// The result is +0 or -0 by the order in which the tree visits them.
TEST(Reduction, TiesFollowTheTree) {
  std::mt19937_64 random(testSeed(30));
  for (uint32_t reduced : {1u, 2u}) {
    KernelMaker maker(2, reduced);
    const int sign = maker.cast(maker.input(dtype::s32, {kOne, kAny}), dtype::f32);
    const int zero = maker.apply(Op::Mul, {sign, maker.scalar(dtype::f32)});
    maker.beginStage(true);
    maker.reduce(Op::Amax, zero);
    maker.reduce(Op::Amin, zero);
    const int largest = maker.total(0, dtype::f32), smallest = maker.total(1, dtype::f32);
    maker.beginStage(false);
    maker.store(largest, keptClasses(maker.kernel()));
    maker.store(smallest, keptClasses(maker.kernel()));
    check(maker.kernel(), {{13, 40}, {40, 13}, {100, 200}, {200, 100}}, random,
          {.low = 0, .high = 0});
    if (reduced == 1) {
      check(maker.kernel(), {{13, 40}, {16, 20}}, random, {.low = 0, .high = 0},
            ir::Stores::Across);
    }
  }
}

// fmod is long enough for bodies of one vector, whose accumulators take turns.
TEST(Reduction, RowsWithLongBodies) {
  std::mt19937_64 random(testSeed(20));
  KernelMaker maker(2, 1);
  const int x = maker.input(dtype::f32, {kOne, kAny});
  maker.beginStage(true);
  maker.reduce(Op::Sum, maker.apply(Op::Mod, {x, maker.scalar(dtype::f32)}));
  maker.reduce(Op::Amax, x);
  const int sum = maker.total(0, dtype::f32), largest = maker.total(1, dtype::f32);
  maker.beginStage(false);
  maker.store(maker.apply(Op::Sub, {sum, largest}), keptClasses(maker.kernel()));
  std::vector<std::vector<int64_t>> extents;
  for (int64_t n : kRowExtents) extents.push_back({n, 2});
  check(maker.kernel(), extents, random);
}

TEST(Reduction, RowsLongerThanAChunk) {
  std::mt19937_64 random(testSeed(22));
  check(reductions(1, 1, dtype::f32, kOne), {{4095}, {4096}, {4097}, {8200}, {70001}}, random);
  check(reductions(2, 3, dtype::f32, kOne), {{4130, 3}}, random);
}

TEST(Reduction, RowsOverSeveralAxes) {
  std::mt19937_64 random(testSeed(23));
  check(reductions(3, 0b101, dtype::f32, kOne), {{40, 3, 5}, {7, 2, 9}, {33, 0, 2}, {33, 2, 0}},
        random);
  check(reductions(4, 0b1101, dtype::f64, kOne), {{20, 3, 2, 4}, {100, 1, 1, 3}}, random);
  check(reductions(5, 0b11111, dtype::f32, kOne), {{17, 2, 3, 2, 3}}, random);
  // Groups of 4, of 64 and of 40 turns, the last one smaller.
  check(reductions(2, 0b11, dtype::f32, kOne), {{1000, 10}, {3, 300}, {100, 90}}, random);
  check(reductions(4, 0b1101, dtype::f32, kOne), {{100, 2, 7, 13}}, random);
}

TEST(Reduction, ColumnsOfEveryWidth) {
  std::mt19937_64 random(testSeed(24));
  std::vector<std::vector<int64_t>> extents;
  for (int64_t n : {1, 15, 16, 17, 31, 32, 100, 127, 128, 129, 300}) extents.push_back({n, 5});
  for (dtype type : {dtype::f32, dtype::f64, dtype::s16, dtype::u32, dtype::u8, dtype::b8}) {
    check(reductions(2, 2, type, kOne), extents, random);
    check(reductions(2, 2, type, kAny), extents, random);
  }
}

// More columns than a tile has sums for; what several sweeps read is cut by its height, too.
TEST(Reduction, ColumnsOfSeveralTiles) {
  std::mt19937_64 random(testSeed(28));
  for (dtype type : {dtype::f32, dtype::f64, dtype::u8}) {
    check(reductions(2, 2, type, kOne), {{4100, 3}, {2049, 140}, {1024, 9}}, random);
  }
  check(normalization(2, 2), {{1500, 300}, {1025, 2}}, random);
}

TEST(Reduction, ShortElementsFillARegister) {
  const auto lanes = [](const ir::Kernel& kernel, const ir::Target& target,
                        ir::Stores stores = ir::Stores::Cached) {
    return codegen::cpu::planKernel(kernel, target, stores).lanes;
  };
  const auto moved = [](int rank) {
    KernelMaker maker(rank);
    std::vector<ir::Stride> strides(rank, kAny);
    strides[0] = kOne;
    const int x = maker.input(dtype::f16, strides);
    maker.beginStage(false);
    maker.store(x, strides);
    return maker.kernel();
  };
  KernelMaker filled(1, 0);
  const int number = filled.scalar(dtype::f32);
  filled.beginStage(false);
  filled.store(number, {kZero});
  for (const ir::Target& target : targets()) {
    EXPECT_EQ(lanes(reductions(2, 2, dtype::u8, kOne), target), target.vectorBits / 8);
    EXPECT_EQ(lanes(reductions(2, 2, dtype::u8, kAny), target), ir::kLanes);
    EXPECT_EQ(lanes(reductions(2, 2, dtype::s16, kOne), target), target.vectorBits / 16);
    EXPECT_EQ(lanes(reductions(2, 2, dtype::f32, kOne), target), ir::kLanes);
    // Lines of memory that begin at multiples of kLanes are all that streaming code may write.
    EXPECT_EQ(lanes(moved(1), target, ir::Stores::Streaming), target.vectorBits / 16);
    EXPECT_EQ(lanes(moved(2), target, ir::Stores::Aligning), target.vectorBits / 16);
    EXPECT_EQ(lanes(moved(2), target, ir::Stores::Streaming), ir::kLanes);
    EXPECT_EQ(lanes(filled.kernel(), target), ir::kLanes);
  }
}

TEST(Reduction, ColumnsOfEveryHeight) {
  std::mt19937_64 random(testSeed(25));
  std::vector<std::vector<int64_t>> extents;
  for (int64_t n : {0, 1, 2, 127, 128, 129, 256, 1000}) extents.push_back({20, n});
  check(reductions(2, 2, dtype::f32, kOne), extents, random);
  check(reductions(3, 0b110, dtype::f32, kOne), {{20, 5, 7}, {150, 130, 3}, {3, 0, 2}, {3, 2, 0}},
        random);
  check(reductions(4, 0b1010, dtype::f32, kOne), {{18, 5, 3, 4}, {5, 140, 2, 2}}, random);
  check(reductions(4, 0b1110, dtype::f32, kOne), {{18, 3, 11, 9}, {40, 1, 130, 2}}, random);
}

// Plain loops in double, to hold the reference itself against something.
TEST(Reduction, SumsAreSums) {
  std::mt19937_64 random(26);
  for (uint32_t reduced : {1u, 2u, 3u}) {
    KernelMaker maker(2, reduced);
    const int x = maker.input(dtype::f64, {kOne, kAny});
    maker.beginStage(true);
    maker.reduce(Op::Sum, x);
    const int total = maker.total(0, dtype::f64);
    maker.beginStage(false);
    maker.store(total, keptClasses(maker.kernel()));
    const KernelLaunch launch(maker.kernel(), {300, 200}, random, {.irregular = false});
    run(*compile(maker.kernel(), targets()[0]), launch);
    const auto* in = static_cast<const double*>(launch.data(0));
    const auto* out = static_cast<const double*>(launch.data(1));
    std::vector<double> sums(60000);
    for (int64_t j = 0; j < 200; ++j) {
      for (int64_t i = 0; i < 300; ++i) {
        sums[(reduced & 1 ? 0 : i) + (reduced & 2 ? 0 : j * launch.stride(1, 1))] +=
            in[i + 300 * j];
      }
    }
    for (int64_t i = 0; i < launch.domain(); ++i) EXPECT_NEAR(out[i], sums[i], 1e-9);
  }
}

TEST(Reduction, SeveralStages) {
  std::mt19937_64 random(testSeed(27));
  check(normalization(2, 1), {{1, 4}, {16, 3}, {100, 7}, {1000, 2}, {0, 3}}, random);
  check(normalization(2, 2), {{1, 4}, {16, 3}, {100, 7}, {7, 1000}, {300, 150}, {3, 0}}, random);
  check(normalization(3, 0b101), {{33, 4, 5}}, random);
  check(normalization(3, 0b110), {{33, 4, 5}}, random);
  check(normalization(3, 0b010), {{33, 4, 5}}, random);
}

// Values that vary along some of the axes only are computed in the loop where they belong.
TEST(Reduction, PartlyUniformValues) {
  std::mt19937_64 random(testSeed(28));
  for (uint32_t reduced : {0b001u, 0b101u, 0b010u, 0b110u, 0b111u}) {
    KernelMaker maker(3, reduced);
    const int x = maker.input(dtype::f32, {kOne, kAny, kAny});
    const int a = maker.input(dtype::f32, {kZero, kOne, kZero});
    const int b = maker.input(dtype::f32, {kZero, kZero, kOne});
    const int c = maker.input(dtype::f32, {kZero, kZero, kZero});
    const int ab = maker.apply(Op::Mul, {a, b});
    const int mask = maker.apply(Op::LessThan, {b, c});
    const int chosen = maker.apply(Op::Where, {mask, x, ab});
    maker.beginStage(true);
    maker.reduce(Op::Sum, maker.apply(Op::Add, {chosen, c}));
    maker.reduce(Op::Sum, ab);
    maker.reduce(Op::Amax, mask);
    const int sum = maker.apply(Op::Sub, {maker.total(0, dtype::f32), maker.total(1, dtype::f32)});
    const int any = maker.total(2, dtype::b8);
    maker.beginStage(false);
    maker.store(sum, keptClasses(maker.kernel()));
    maker.store(any, keptClasses(maker.kernel()));
    check(maker.kernel(), {{33, 3, 5}, {1, 2, 3}, {200, 2, 2}}, random);
  }
}

TEST(Reduction, PartsOfTheDomainGiveTheWhole) {
  std::mt19937_64 random(testSeed(29));
  using ir::Stores;
  for (const auto& [reduced, stores] :
       {std::pair{0b001u, Stores::Cached}, {0b010u, Stores::Cached}, {0b001u, Stores::Across}}) {
    const ir::Kernel kernel = normalization(3, reduced);
    const auto code = compile(kernel, targets()[0], stores);
    const int64_t length = stores == Stores::Across ? 5 : 50;
    const KernelLaunch whole(kernel, {length, 6, 7}, random), parts(whole);
    run(*code, whole);
    const ir::KernelArgs args = parts.args();
    for (int64_t begin = 0; begin < parts.domain();) {
      const int64_t end = std::min<int64_t>(parts.domain(), begin + random() % 40);
      EXPECT_EQ(code->entry()(&args, begin, end), -1);
      begin = end;
    }
    EXPECT_EQ(parts.difference(whole), "");
  }
}

}  // namespace
}  // namespace fl::testing
