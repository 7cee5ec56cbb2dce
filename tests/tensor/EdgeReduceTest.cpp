// Special values through every reduction: every pair of them at changing places among others, over
// one axis, across one and over all, alone and fused between two other operators.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "fl/ir/Op.h"
#include "fl/runtime/Counters.h"
#include "tests/tensor/EdgeValues.h"

namespace fl::testing {
namespace {

using ir::Op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kLengths[] = {3, 3 * 16 + 5, 256 + 3 * 16 + 5};
constexpr int kShownFailures = 8;

struct ReduceRow {
  Op op;
  Tensor (*apply)(const Tensor&, const std::vector<int>&, bool);
  double (*real)(double, double);
  Whole (*whole)(Whole, Whole);
  // Elements besides the pair: zeros, or more of the first (no other changes an extreme).
  bool amongZeros;
};

double least(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? x + y : std::fmin(x, y);
}
double most(double x, double y) { return std::isnan(x) || std::isnan(y) ? x + y : std::fmax(x, y); }

const ReduceRow kRows[] = {
    {Op::Sum, &fl::sum, [](double x, double y) { return x + y + 0.0; },
     [](Whole x, Whole y) { return x + y; }, true},
    {Op::Amax, &fl::amax, &most, [](Whole x, Whole y) { return std::max(x, y); }, false},
    {Op::Amin, &fl::amin, &least, [](Whole x, Whole y) { return std::min(x, y); }, false},
};

// Sums of narrow dtypes are wider.
dtype resultOf(const ReduceRow& row, dtype type) {
  if (row.op != Op::Sum) {
    return type;
  }
  switch (type) {
    case dtype::b8:
    case dtype::u8:
    case dtype::u16:
      return dtype::u32;
    case dtype::s16:
      return dtype::s32;
    case dtype::f16:
    case dtype::bf16:
      return dtype::f32;
    default:
      return type;
  }
}

// Rows of `length` elements, one for each pair of special values.
struct Grid {
  dtype type;
  size_t length;
  std::vector<std::array<Scalar, 2>> pairs;
  std::vector<uint64_t> bits;  // length x pairs, column-major

  Tensor alongFirstAxis() const {
    return makeTensor(Shape({static_cast<Dim>(length), static_cast<Dim>(pairs.size())}), bits,
                      type);
  }
  // pairs x length, in memory so too.
  Tensor alongSecondAxis() const {
    std::vector<uint64_t> turned(bits.size());
    for (size_t i = 0; i < bits.size(); ++i) {
      turned[i / length + i % length * pairs.size()] = bits[i];
    }
    return makeTensor(Shape({static_cast<Dim>(pairs.size()), static_cast<Dim>(length)}), turned,
                      type);
  }
  Tensor pair(size_t i) const { return makeTensor(bits, type, i * length, length); }
};

Grid makeGrid(const ReduceRow& row, dtype type, size_t length) {
  Grid grid{type, length, {}, {}};
  const std::vector<Scalar> specials = specialsOf(type);
  for (const Scalar& x : specials) {
    for (const Scalar& y : specials) {
      const size_t place = grid.pairs.size() * 7;
      grid.pairs.push_back({x, y});
      const size_t begin = grid.bits.size();
      grid.bits.resize(begin + length, row.amongZeros ? 0 : encode(x));
      grid.bits[begin + place % length] = encode(x);
      grid.bits[begin + (place + 1 + place / length % (length - 1)) % length] = encode(y);
    }
  }
  return grid;
}

class ReduceRunner {
 public:
  ReduceRunner(const ReduceRow& row, dtype type, size_t length)
      : row_(row), grid_(makeGrid(row, type, length)) {}

  void run(bool fused) {
    fused_ = fused;
    check(0, reduce(grid_.alongFirstAxis(), 0), "over axis 0");
    check(0, reduce(grid_.alongSecondAxis(), 1), "over axis 1");
    for (size_t i = 0; i < grid_.pairs.size(); ++i) {
      check(i, reduce(grid_.pair(i), 0), "over all");
    }
  }

 private:
  Tensor reduce(const Tensor& x, int axis) const {
    const uint64_t launches = runtime::counters().kernelLaunches;
    const Tensor result =
        fused_ ? whereTrue(row_.apply(timesOne(x), {axis}, true)) : row_.apply(x, {axis}, true);
    bitsOf(result);
    expectOneKernel(launches);
    return result;
  }

  void check(size_t firstPair, const Tensor& result, const char* how) {
    const std::vector<uint64_t> bits = bitsOf(result);
    for (size_t i = 0; i < bits.size(); ++i) {
      const auto& [x, y] = grid_.pairs[firstPair + i];
      const Scalar want = expected(x, y), got = decode(bits[i], result.type());
      const bool zeros = isFloating(want.type) && want.real == 0 && row_.op != Op::Sum;
      const bool right = zeros ? got.type == want.type && got.real == 0 : matches(got, want);
      if (!right && ++failures_ <= kShownFailures) {
        ADD_FAILURE() << ir::opName(row_.op) << " of " << grid_.type << "[" << grid_.length
                      << "] with " << toString(x) << " and " << toString(y) << " " << how << " is "
                      << toString(got) << " of " << got.type << ", expected " << toString(want)
                      << (fused_ ? ", fused" : ", alone");
      }
    }
  }

  Scalar expected(const Scalar& x, const Scalar& y) const {
    const dtype type = resultOf(row_, x.type);
    if (x.type == dtype::b8 && row_.op == Op::Sum) {
      return wholeScalar((x.whole != 0) + (y.whole != 0), type);  // counts
    }
    return isFloating(x.type) ? realScalar(row_.real(x.real, y.real), type)
                              : wholeScalar(row_.whole(x.whole, y.whole), type);
  }

  const ReduceRow& row_;
  Grid grid_;
  bool fused_ = false;
  int failures_ = 0;
};

TEST(ReduceEdges, EveryRowIsTested) {
  for (int i = 0; i < ir::kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const bool found = std::any_of(std::begin(kRows), std::end(kRows),
                                   [&](const ReduceRow& row) { return row.op == op; });
    EXPECT_EQ(found, ir::opKind(op) == ir::Kind::Reduce) << ir::opName(op);
  }
}

class ReduceEdges : public ::testing::TestWithParam<ReduceRow> {};

TEST_P(ReduceEdges, EveryDtype) {
  for (dtype type : allTypes()) {
    for (size_t length : kLengths) {
      ReduceRunner runner(GetParam(), type, length);
      runner.run(false);
      runner.run(true);
    }
  }
}

// One special value among many: every lane and chunk hands it on.
TEST_P(ReduceEdges, OneAmongMany) {
  const ReduceRow& row = GetParam();
  constexpr size_t kCount = 100'003;
  for (dtype type : floatTypes()) {
    for (const Scalar& special : specialsOf(type)) {
      for (size_t place : {size_t{0}, kCount / 3, kCount - 1}) {
        std::vector<uint64_t> bits(kCount, row.amongZeros ? 0 : encode(special));
        bits[place] = encode(special);
        const Tensor result = row.apply(makeTensor(bits, type, 0, kCount), {}, false);
        const dtype wide = resultOf(row, type);
        const Scalar want = realScalar(special.real + (row.amongZeros ? 0.0 : -0.0), wide);
        EXPECT_TRUE(matches(decode(bitsOf(result)[0], wide), want))
            << ir::opName(row.op) << " of " << type << " with " << toString(special);
      }
    }
  }
}

// Not -0 alone, and not fewer elements than none.
TEST(ReduceEdges, SumsStartFromZero) {
  for (dtype type : floatTypes()) {
    for (size_t length : kLengths) {
      const std::vector<uint64_t> bits(length, encode(realScalar(-0.0, type)));
      const Tensor result = sum(makeTensor(bits, type, 0, length));
      EXPECT_EQ(bitsOf(result)[0], 0u) << type << " of " << length;
    }
  }
}

TEST(ReduceEdges, NothingGivesTheStart) {
  for (dtype type : allTypes()) {
    const Tensor none(Shape({0}), type);
    EXPECT_EQ(bitsOf(sum(none))[0], 0u) << type;
    const bool real = isFloating(type);
    const Scalar lowest = real ? realScalar(-kInfinity, type) : wholeScalar(smallestOf(type), type);
    const Scalar highest = real ? realScalar(kInfinity, type) : wholeScalar(largestOf(type), type);
    EXPECT_EQ(bitsOf(amax(none))[0], encode(lowest)) << type;
    EXPECT_EQ(bitsOf(amin(none))[0], encode(highest)) << type;
  }
}

std::string opOf(const ::testing::TestParamInfo<ReduceRow>& info) {
  return ir::opName(info.param.op);
}

INSTANTIATE_TEST_SUITE_P(Edge, ReduceEdges, ::testing::ValuesIn(kRows), opOf);

}  // namespace
}  // namespace fl::testing
