// Row kernels that keep rows in scratch: what waits there, and that results have the same bits.
#include "fl/codegen/cpu/KernelPlan.h"
#include "tests/codegen/EmitterHarness.h"

namespace fl::testing {
namespace {

using codegen::cpu::KernelPlan;
using ir::Op;
using ir::Stores;

const std::vector<ir::Stride> kRow = {kOne, kAny};

KernelPlan plan(const ir::Kernel& kernel, Stores stores = Stores::Keeping) {
  return codegen::cpu::planKernel(kernel, tile::hostTarget(), stores);
}

void expectKept(const KernelPlan& plan, size_t number, int value, int writer, int firstRead) {
  ASSERT_LT(number, plan.keptRows.size());
  const ir::KeptRow& row = plan.keptRows[number];
  EXPECT_EQ(row.value, value);
  EXPECT_EQ(row.writer, writer);
  EXPECT_EQ(row.firstRead, firstRead);
}

TEST(KeptRows, SoftmaxKeepsItsExponentials) {
  KernelMaker maker(2, 1);
  const int x = maker.input(dtype::f32, kRow);
  maker.beginStage(true);
  maker.reduce(Op::Amax, x);
  const int largest = maker.total(0, dtype::f32);
  const int power = maker.apply(Op::Exp, {maker.apply(Op::Sub, {x, largest})});
  maker.beginStage(true);
  maker.reduce(Op::Sum, power);
  const int sum = maker.total(1, dtype::f32);
  const int result = maker.apply(Op::Div, {power, sum});
  maker.beginStage(true);
  maker.store(result, kRow);
  const KernelPlan keeping = plan(maker.kernel());
  EXPECT_EQ(keeping.keptRows.size(), 1);
  expectKept(keeping, 0, power, 1, 2);
  EXPECT_EQ(keeping.needed[2], (std::vector{power, sum, result}));
  EXPECT_TRUE(plan(maker.kernel(), Stores::Cached).keptRows.empty());
}

// The last of what one sweep computes, from its first reader on; what is cheap is computed again.
TEST(KeptRows, DropoutKeepsItsResultAndNoDifferences) {
  KernelMaker maker(2, 1);
  const int x = maker.input(dtype::f32, kRow);
  const int number = maker.random(dtype::f32, maker.scalar(dtype::u64), maker.scalar(dtype::u64),
                                  maker.index(kRow));
  const int keeps = maker.apply(Op::LessThan, {number, maker.scalar(dtype::f32)});
  const int dropped = maker.apply(Op::Mul, {x, maker.cast(keeps, dtype::f32)});
  maker.beginStage(true);
  maker.reduce(Op::Sum, dropped);
  const int difference = maker.apply(Op::Sub, {dropped, maker.total(0, dtype::f32)});
  maker.beginStage(true);
  maker.reduce(Op::Sum, maker.apply(Op::Mul, {difference, difference}));
  const int scaled = maker.apply(Op::Mul, {difference, maker.total(1, dtype::f32)});
  maker.beginStage(true);
  maker.store(scaled, kRow);
  const KernelPlan keeping = plan(maker.kernel());
  EXPECT_EQ(keeping.keptRows.size(), 1);
  expectKept(keeping, 0, dropped, 0, 1);
}

// Quotients, remainders and a mask; `many` reads more of them again than there are rows for.
ir::Kernel quotients(dtype type, bool many) {
  KernelMaker maker(2, 1);
  const int x = maker.input(type, kRow), y = maker.input(type, {kAny, kAny});
  const int quotient = maker.apply(Op::Div, {x, y});
  const int inverse = maker.apply(Op::Div, {y, x});
  const int isSmall = maker.apply(Op::LessThan, {inverse, maker.scalar(type)});
  maker.beginStage(true);
  maker.reduce(Op::Amax, maker.apply(Op::Where, {isSmall, quotient, x}));
  const int rest = maker.apply(Op::Mod, {quotient, maker.total(0, type)});
  maker.beginStage(true);
  maker.reduce(Op::Sum, rest);
  std::vector<int> extra;
  for (int i = 0; many && i < 4; ++i) {
    extra.push_back(maker.apply(Op::Div, {rest, maker.scalar(type)}));
    maker.reduce(Op::Amin, extra.back());
  }
  const int sum = maker.total(1, type);
  maker.beginStage(true);
  maker.store(maker.apply(Op::Add, {rest, sum}), kRow);
  maker.store(isSmall, kRow);
  for (int value : extra) maker.store(maker.apply(Op::Sub, {value, sum}), kRow);
  return maker.kernel();
}

TEST(KeptRows, NoMoreThanThereAreRowsFor) {
  EXPECT_EQ(plan(quotients(dtype::f32, false)).keptRows.size(), 3);
  EXPECT_EQ(plan(quotients(dtype::f32, true)).keptRows.size(), ir::kMaxKeptRows);
}

// Nothing behind the last vector of a row is written.
void expectWithinRows(const ir::Kernel& kernel, const KernelPlan& plan, int64_t length,
                      const unsigned char* scratch) {
  for (size_t i = 0; i < ir::kMaxKeptRows; ++i) {
    const size_t size =
        i < plan.keptRows.size() ? getTypeSize(kernel.values[plan.keptRows[i].value].type) : 0;
    const size_t vectors = (length + ir::kLanes - 1) / ir::kLanes;
    for (int64_t byte = vectors * ir::kLanes * size; byte < ir::kKeptRowBytes; ++byte) {
      ASSERT_EQ(scratch[i * ir::kKeptRowBytes + byte], KernelLaunch::kUnwritten)
          << i << " " << byte;
    }
  }
}

void expectSameBits(const ir::Kernel& kernel) {
  std::mt19937_64 random(testSeed(51));
  for (const ir::Target& target : targets()) {
    const auto code = compile(kernel, target, Stores::Keeping);
    for (const int64_t length : {0, 1, 15, 16, 17, 33, 1000, 4100, 16384}) {
      const KernelLaunch expected(kernel, {length, 3}, random, {.special = length < 4000});
      const KernelLaunch actual(expected);
      runReference(expected);
      const ir::KernelArgs args = actual.args();
      EXPECT_EQ(code->entry()(&args, 0, actual.domain()), -1);
      EXPECT_EQ(actual.difference(expected), "") << target.vectorBits << " bits, " << length;
      expectWithinRows(kernel, plan(kernel), length,
                       static_cast<const unsigned char*>(args.scratch));
    }
  }
}

TEST(KeptRows, GiveTheSameBits) {
  for (const dtype type : {dtype::f32, dtype::f64}) {
    for (const bool many : {false, true}) expectSameBits(quotients(type, many));
  }
}

// A value of bf16 that the first sweep makes and the last one stores, of what only the first needs.
TEST(KeptRows, WhatIsKeptIsNotRoundedAgain) {
  KernelMaker maker(2, 1);
  const int x = maker.input(dtype::f32, kRow);
  const int quotient = maker.apply(Op::Div, {x, maker.scalar(dtype::f32)});
  const int rounded = maker.cast(quotient, dtype::bf16);
  const int wide = maker.cast(rounded, dtype::f32);
  maker.beginStage(true);
  maker.reduce(Op::Amax, wide);
  const int share = maker.apply(Op::Div, {wide, maker.total(0, dtype::f32)});
  maker.beginStage(true);
  maker.reduce(Op::Sum, share);
  const int sum = maker.total(1, dtype::f32);
  maker.beginStage(true);
  maker.store(rounded, kRow);
  maker.store(maker.apply(Op::Div, {share, sum}), kRow);
  const KernelPlan keeping = plan(maker.kernel());
  EXPECT_EQ(keeping.keptRows.size(), 3);
  EXPECT_TRUE(keeping.rounded[2].empty());
  expectSameBits(maker.kernel());
}

}  // namespace
}  // namespace fl::testing
