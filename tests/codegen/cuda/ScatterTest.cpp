// The kernel of fl/kernel/cuda/Scatter.h, run on the CPU, against the reference interpreter, bit
// for bit, with the blocks and warps in forward and in reversed order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "fl/ir/Interpreter.h"
#include "fl/kernel/cuda/Scatter.h"
#include "tests/codegen/cuda/HostModule.h"

namespace fl::testing {
namespace {

using codegen::cuda::emitScatter;
using ir::Op;
using ir::ValueType;
using ir::cuda::GatherReport;

using Bytes = std::vector<unsigned char>;
constexpr size_t kGuard = 64;  // bytes behind a result that nobody writes
constexpr unsigned char kGuardByte = 0x5a;

struct Case {
  Shape to, index, from;
  Dim axis;
  std::vector<int64_t> places = {};  // random ones otherwise
};

Bytes randomElements(dtype type, Dim count, std::mt19937_64& random) {
  return dispatchType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Bytes bytes(count * sizeof(T));
    for (Dim i = 0; i < count; ++i) {
      const auto number = static_cast<int>(random() % 2000);
      const T value = isFloating(type) ? T(static_cast<float>(number - 1000) / 7) : T(number);
      std::memcpy(&bytes[i * sizeof(T)], &value, sizeof(T));
    }
    return bytes;
  });
}

class Scattering {
 public:
  Scattering(Op op, dtype type, const Case& tested, uint64_t seed)
      : op_(op), type_(type), case_(tested) {
    std::mt19937_64 random(seed);
    x_ = randomElements(type, tested.to.elements(), random);
    y_ = randomElements(type, tested.from.elements(), random);
    places_ = tested.places;
    while (std::ssize(places_) < tested.index.elements()) {
      places_.push_back(static_cast<int64_t>(random() % tested.to[tested.axis]));
    }
  }

  Bytes expected() const {
    const std::vector<ValueType> types = operandTypes();
    Bytes result = guarded(Bytes(x_.size()));
    ir::interpret(op_,
                  {{&types[0], const_cast<unsigned char*>(x_.data())},
                   {&types[1], const_cast<int64_t*>(places_.data())},
                   {&types[2], const_cast<unsigned char*>(y_.data())}},
                  {case_.axis}, types[0], result.data());
    return result;
  }
  Bytes launched(const HostModule& module, bool reversed, GatherReport* report) const {
    const std::vector<ValueType> types = operandTypes();
    Bytes result = guarded(x_);
    const auto shape = ir::cuda::scatterShape(types, {case_.axis}, types[0]);
    EXPECT_TRUE(shape);
    const ir::cuda::Launch launch = launchOf(*shape);
    const auto words = packArguments(*shape, result.data(), places_.data(), y_.data(), report);
    if (launch.blocks > 0) module.launch(ir::cuda::kScatterEntry, launch, words, reversed);
    return result;
  }

 private:
  std::vector<ValueType> operandTypes() const {
    return {{type_, case_.to}, {dtype::s64, case_.index}, {type_, case_.from}};
  }
  static Bytes guarded(Bytes bytes) {
    bytes.resize(bytes.size() + kGuard, kGuardByte);
    return bytes;
  }

  const Op op_;
  const dtype type_;
  const Case& case_;
  Bytes x_, y_;
  std::vector<int64_t> places_;
};

std::vector<Case> smallCases() {
  return {
      {{7}, {50}, {50}, 0},
      {{3}, {300}, {300}, 0},  // more than a look at the index takes
      {{5}, {0}, {0}, 0},
      {{0, 4}, {1, 3}, {0, 3}, 1},
      {{70, 40}, {1, 33}, {70, 33}, 1},
      {{2500, 5}, {1, 9}, {2500, 9}, 1},  // three blocks a line
      {{11, 9}, {20, 1}, {20, 9}, 0},
      {{11, 9}, {20, 9}, {20, 9}, 0},
      {{6, 11, 4}, {1, 20, 1}, {6, 20, 4}, 1},
      {{6, 11, 4}, {6, 20, 4}, {6, 20, 4}, 1},
      {{6, 11, 4}, {1, 20, 4}, {6, 20, 4}, 1},
      {{6, 11, 4}, {6, 20, 1}, {6, 20, 4}, 1},
      {{6, 4, 11}, {1, 1, 20}, {6, 4, 20}, 2},
  };
}

void expectInterpreted(Op op, dtype type, const std::vector<Case>& cases) {
  const HostModule module(emitScatter(op, type));
  for (size_t i = 0; i < cases.size(); ++i) {
    const Scattering scattering(op, type, cases[i], /*seed=*/i);
    for (const bool reversed : {false, true}) {
      GatherReport report;
      EXPECT_EQ(scattering.launched(module, reversed, &report), scattering.expected())
          << ir::opName(op) << " of " << type << ", case " << i << ", reversed " << reversed;
      EXPECT_EQ(report.gather, -1);
    }
  }
}

class CudaScatter : public ::testing::TestWithParam<int> {};

TEST_P(CudaScatter, HasTheInterpretersBits) {
  for (const Op op : {Op::Scatter, Op::ScatterAdd}) {
    expectInterpreted(op, static_cast<dtype>(GetParam()), smallCases());
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CudaScatter, ::testing::Range(0, kDtypeCount),
                         [](const auto& info) {
                           return dtypeToString(static_cast<dtype>(info.param));
                         });

// Blocks of 256 threads, which look at 1024 places at once; one place has most of the lines.
TEST(CudaScatter, TakesALongIndex) {
  Case tested{{256, 40}, {1, 2200}, {256, 2200}, 1};
  for (int i = 0; i < 2200; ++i) tested.places.push_back(i % 100 == 7 ? i / 100 + 3 : 2);
  for (const Op op : {Op::Scatter, Op::ScatterAdd}) expectInterpreted(op, dtype::f32, {tested});
}

// The others are written as if those were not there, and memory around them stays.
TEST(CudaScatter, ReportsBadIndicesAndWritesNothingThere) {
  for (const int64_t bad : {int64_t{-1}, int64_t{6}, INT64_MIN, INT64_MAX}) {
    const HostModule module(emitScatter(Op::ScatterAdd, dtype::f32));
    const Case with{{2, 6}, {1, 4}, {2, 4}, 1, {5, bad, 0, bad}};
    GatherReport report;
    const Bytes bytes =
        Scattering(Op::ScatterAdd, dtype::f32, with, 1).launched(module, false, &report);
    EXPECT_EQ(report.gather, 0);
    EXPECT_EQ(report.bad.index, bad);
    EXPECT_EQ(report.bad.bound, 6);
    // Place 3 is that of the bad ones here, and of nothing else.
    const Case without{{2, 6}, {1, 4}, {2, 4}, 1, {5, 3, 0, 3}};
    Bytes expected = Scattering(Op::ScatterAdd, dtype::f32, without, 1).expected();
    constexpr size_t kLine = 2 * sizeof(float);
    std::mt19937_64 random(1);
    const Bytes before = randomElements(dtype::f32, without.to.elements(), random);
    std::copy_n(before.begin() + 3 * kLine, kLine, expected.begin() + 3 * kLine);
    EXPECT_EQ(bytes, expected);
  }
}

// What the host does instead.
TEST(CudaScatter, IsForShortIndicesOfWholeSides) {
  const auto isFor = [](const Shape& to, const Shape& index, const Shape& from, Dim axis) {
    return ir::cuda::scatterShape({{dtype::f32, to}, {dtype::s64, index}, {dtype::f32, from}},
                                  {axis}, {dtype::f32, to})
        .has_value();
  };
  EXPECT_TRUE(isFor({3, 4, 9}, {1, 1, 5}, {3, 4, 5}, 2));
  EXPECT_FALSE(isFor({3, 4, 9}, {3, 1, 5}, {3, 4, 5}, 2));
  constexpr Dim kMany = 1 << 16;
  EXPECT_TRUE(isFor({1024, kMany}, {1, kMany}, {1024, kMany}, 1));
  EXPECT_FALSE(isFor({1024, kMany}, {1, kMany + 1}, {1024, kMany + 1}, 1));
  EXPECT_FALSE(isFor({1025, kMany}, {1, kMany}, {1025, kMany}, 1));
  EXPECT_TRUE(isFor({1024, 10}, {1, 1 << 20}, {1024, 1 << 20}, 1));
}

}  // namespace
}  // namespace fl::testing
