// Gather: elements at places that data gives, alone and fused, and indices out of range.
#include <gtest/gtest.h>

#include <numeric>

#include "fl/fl.h"
#include "fl/host/ThreadPool.h"
#include "fl/tensor/TableOps.h"
#include "tests/ErrorOf.h"

namespace fl {
namespace {

using table::gather;
using test::errorOf;

// 0, 1, 2, ... in column-major order.
template <typename T>
Tensor counted(const Shape& shape) {
  std::vector<T> values(shape.elements());
  std::iota(values.begin(), values.end(), T(0));
  return Tensor::fromVector(shape, values);
}

Tensor indices(const Shape& shape, const std::vector<int64_t>& values) {
  return Tensor::fromVector(shape, std::vector<long long>(values.begin(), values.end()));
}

// Positions that jump about, from 0 to below `bound`.
std::vector<int64_t> scattered(size_t count, int64_t bound) {
  std::vector<int64_t> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<int64_t>(i * i * 7 + 3 * i) % bound;
  }
  return values;
}

template <typename T>
class GatherOf : public ::testing::Test {};
using ElementTypes = ::testing::Types<char, short, int, long long, float, double>;
TYPED_TEST_SUITE(GatherOf, ElementTypes);

TYPED_TEST(GatherOf, EverySizeOfElement) {
  for (int count : {1, 15, 16, 17, 100, 3000}) {
    const Tensor x = counted<TypeParam>({77});
    const std::vector<int64_t> at = scattered(count, 77);
    const auto result = gather(x, indices({count}, at), 0).template toHostVector<TypeParam>();
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(result[i], static_cast<TypeParam>(at[i])) << i << " of " << count;
    }
  }
}

// One index says which line is looked up, of any length and beginning.
TYPED_TEST(GatherOf, WholeLines) {
  constexpr int kTall = 80, kLines = 11, kCount = 23;
  const Tensor x = counted<TypeParam>({kTall, kLines});
  const std::vector<int64_t> at = scattered(kCount, kLines);
  for (int begin : {0, 3}) {
    for (int length : {1, 7, 15, 16, 17, 32, 49, 64, 77}) {
      const Tensor lines = x(range(begin, begin + length), span)(span, indices({kCount}, at));
      const auto result = (lines + TypeParam(1)).template toHostVector<TypeParam>();
      for (int i = 0; i < length * kCount; ++i) {
        const auto from = begin + i % length + kTall * at[i / length];
        ASSERT_EQ(result[i], static_cast<TypeParam>(from + 1)) << i << " of lines of " << length;
      }
      for (int bad : {-kLines - 1, kLines}) {
        const std::string error = errorOf([&] {
          x(range(begin, begin + length), span)(span, indices({3}, {0, bad, 1}))
              .template toHostVector<TypeParam>();
        });
        EXPECT_NE(error.find("is out of range"), std::string::npos) << error;
      }
    }
  }
}

// Threads share a result at places within lines, whose rest each finds element by element.
TEST(Gather, LinesOnSeveralThreads) {
  host::setNumThreads(3);
  constexpr int kTall = 1001, kLines = 37, kCount = 100;
  const Tensor x = counted<float>({kTall, kLines, 2});
  const std::vector<int64_t> at = scattered(kCount, kLines);
  const auto result = gather(x, indices({1, kCount, 1}, at), 1).toHostVector<float>();
  for (int i = 0; i < kTall * kCount * 2; ++i) {
    const int line = i / kTall, half = line / kCount;
    const auto from = i % kTall + kTall * (at[line % kCount] + kLines * half);
    ASSERT_EQ(result[i], static_cast<float>(from)) << i;
  }
}

TEST(Gather, AlongEachAxis) {
  const Shape shape = {5, 6, 7};
  const Tensor x = counted<float>(shape);
  for (int axis = 0; axis < 3; ++axis) {
    Shape out = shape;
    out[axis] = 9;
    const std::vector<int64_t> at = scattered(out.elements(), shape[axis]);
    const auto result = gather(x, indices(out, at), axis).toHostVector<float>();
    for (Dim k = 0; k < out[2]; ++k) {
      for (Dim j = 0; j < out[1]; ++j) {
        for (Dim i = 0; i < out[0]; ++i) {
          const Dim place = i + out[0] * (j + out[1] * k);
          Dim from[] = {i, j, k};
          from[axis] = at[place];
          ASSERT_EQ(result[place], from[0] + 5 * (from[1] + 6 * from[2])) << "axis " << axis;
        }
      }
    }
  }
}

TEST(Gather, BroadcastsIndexAndTable) {
  const auto rows = gather(counted<float>({3, 4}), indices({2, 1}, {2, 0}), 0);
  EXPECT_EQ(rows.shape(), Shape({2, 4}));
  EXPECT_EQ(rows.toHostVector<float>(), (std::vector<float>{2, 0, 5, 3, 8, 6, 11, 9}));
  const auto table = gather(counted<float>({3, 1}), indices({1, 4}, {2, 0, 1, 2}), 0);
  EXPECT_EQ(table.toHostVector<float>(), (std::vector<float>{2, 0, 1, 2}));
}

TEST(Gather, OfViews) {
  const Tensor x = counted<float>({6, 8});
  const Tensor view = transpose(x(range(1, 6, 2), range(2, 8)));  // (6, 3)
  const auto result = gather(view, indices({2, 3}, {5, 0, 1, 1, 3, 4}), 0).toHostVector<float>();
  EXPECT_EQ(result, (std::vector<float>{43, 13, 21, 21, 35, 41}));
}

// The index is computed, and the result used, in the kernel that gathers.
TEST(Gather, FusesWithItsNeighbours) {
  const int n = 1000;
  const Tensor x = counted<float>({n});
  const Tensor at = indices({n}, scattered(n, n / 2));
  const auto result = (gather(x, at * 2 + 1, 0) * 3.0 - 1.0).toHostVector<float>();
  const auto place = at.toHostVector<long long>();
  for (int i = 0; i < n; ++i) {
    ASSERT_EQ(result[i], static_cast<float>(place[i] * 2 + 1) * 3 - 1);
  }
  const Tensor table = counted<float>({10, n});
  const Tensor row = indices({1, n}, scattered(n, 10));
  const float total = sum(gather(table, row, 0)).scalar<float>();
  const auto rows = row.toHostVector<long long>();
  double expected = 0;
  for (int i = 0; i < n; ++i) {
    expected += static_cast<double>(rows[i] + 10 * i);
  }
  EXPECT_NEAR(total, expected, 1e-6 * expected);
}

// A table that was just computed is in memory before it is read.
TEST(Gather, OfComputedTables) {
  const Tensor x = counted<float>({4}) * 2.0;
  EXPECT_EQ((gather(x, indices({4}, {3, 3, 0, 1}), 0) + x).toHostVector<float>(),
            (std::vector<float>{6, 8, 4, 8}));
}

TEST(Gather, OfNothing) {
  EXPECT_EQ(gather(counted<float>({3, 4}), indices({0, 1}, {}), 0).shape(), Shape({0, 4}));
  EXPECT_EQ(gather(counted<float>({0, 0}), indices({2, 1}, {5, 5}), 0).shape(), Shape({2, 0}));
  const Tensor noLines = counted<float>({40, 0});
  EXPECT_NE(errorOf([&] { noLines(span, indices({2}, {0, 0})).toHostVector<float>(); }), "");
}

TEST(Gather, OutOfRangeIsAnErrorOfTheRead) {
  const Tensor x = counted<float>({50});
  for (int64_t bad : {int64_t{-1}, int64_t{50}, std::numeric_limits<int64_t>::min()}) {
    for (int count : {1, 20, 5000}) {
      std::vector<int64_t> at = scattered(count, 50);
      at[count / 2] = bad;
      std::string line;
      const std::string error = errorOf([&] {
        line = std::to_string(__LINE__ + 1);
        const Tensor y = gather(x, indices({count}, at), 0);
        (y + 1.0).toHostVector<float>();
      });
      EXPECT_EQ(error, "gather: f32[50]: " + std::to_string(bad) +
                           " is out of range for dimension 0 of 50 elements, at "
                           "tests/tensor/GatherTest.cpp:" +
                           line);
    }
  }
}

// The failed value may be read again, which fails again; other values are there while it lives.
TEST(Gather, AFailedReadLosesNothing) {
  const Tensor x = counted<float>({5});
  const Tensor before = x * 2.0;
  Tensor bad;
  const std::string first = errorOf([&] { bad = gather(x, indices({1}, {7}), 0) + 1.0; });
  for (int i = 0; i < 2 && first.empty(); ++i) {  // eagerly it failed at the call
    EXPECT_NE(errorOf([&] { bad.toHostVector<float>(); }), "");
  }
  const Tensor after = x + 5.0;
  EXPECT_EQ(after.toHostVector<float>(), (std::vector<float>{5, 6, 7, 8, 9}));
  EXPECT_EQ(before.toHostVector<float>(), (std::vector<float>{0, 2, 4, 6, 8}));
}

TEST(Gather, MisuseIsAnErrorOfTheCall) {
  const Tensor x = counted<float>({3, 4});
  EXPECT_NE(errorOf([&] {
              gather(x, indices({3}, {0, 1, 2}), 0);
            }).find("gather: f32[3,4] x s64[3]: needs an s64 index of as many dimensions"),
            std::string::npos);
  EXPECT_NE(errorOf([&] {
              gather(x, indices({3, 2}, {0, 0, 0, 0, 0, 0}), 0);
            }).find("gather: f32[3,4] x s64[3,2]: shapes do not broadcast"),
            std::string::npos);
  EXPECT_NE(errorOf([&] {
              gather(counted<float>({0, 4}), indices({1, 1}, {0}), 0);
            }).find("gather: f32[0,4] x s64[1,1]: axis 0 is empty"),
            std::string::npos);
}

}  // namespace
}  // namespace fl
