// The order of lines of every dtype, short and long, against a stable sort of their values.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "fl/library/Library.h"
#include "tests/library/LibraryHarness.h"

namespace fl::library {
namespace {

template <typename T>
using Wide = std::conditional_t<std::is_arithmetic_v<T>, T, float>;

template <typename T>
T special(int i) {
  using Limits = std::numeric_limits<Wide<T>>;
  if constexpr (std::is_integral_v<T>) {
    const T values[] = {0, 1, Limits::max(), Limits::lowest(), T(Limits::max() / 2 + 1)};
    return values[i % 5];
  } else {
    const Wide<T> values[] = {0,
                              Wide<T>(-0.0),
                              Limits::infinity(),
                              -Limits::infinity(),
                              Limits::quiet_NaN(),
                              -Limits::quiet_NaN(),
                              Limits::denorm_min(),
                              -Limits::denorm_min(),
                              1,
                              -1};
    return T(values[i % 10]);
  }
}

// Half of them special, so that many are equal.
template <typename T>
std::vector<T> makeElements(int64_t count) {
  std::mt19937_64 random(count);
  std::vector<T> elements(count);
  for (T& element : elements) {
    const uint64_t drawn = random();
    const auto number = static_cast<int64_t>((drawn >> 1) % 2001) - 1000;
    element = drawn % 2 ? special<T>(static_cast<int>(drawn % 1009)) : T(Wide<T>(number));
  }
  return elements;
}

template <typename T>
std::vector<int64_t> sorted(const std::vector<T>& elements, int64_t first, int64_t step,
                            int64_t length) {
  const auto value = [&](int64_t i) { return elements[first + step * i]; };
  std::vector<int64_t> order(length);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t x, int64_t y) {
    if constexpr (std::is_integral_v<T>) {
      return value(x) < value(y);
    } else {
      const auto a = static_cast<Wide<T>>(value(x)), b = static_cast<Wide<T>>(value(y));
      return a < b || (a == a && b != b);
    }
  });
  return order;
}

// Lines along axis 1 of [inner, length, outer], the first `count` of each.
template <typename T>
void expectOrder(dtype type, int64_t inner, int64_t length, int64_t outer, int64_t count) {
  std::vector<T> elements = makeElements<T>(inner * length * outer);
  const LibraryCall call{ir::Op::Argsort,
                         {1, count},
                         {{type, {inner, length, outer}}},
                         {dtype::s64, {inner, count, outer}}};
  std::vector<int64_t> got(inner * count * outer, -1);
  void* operand = elements.data();
  host::ThreadPool pool(2);
  const auto function = prepareLibrary(call);
  Guarded scratch(function->scratchBytes(), 0xFF);
  function->run(&operand, got.data(), scratch.data(), pool);
  ASSERT_TRUE(scratch.guardsIntact()) << dtypeToString(type) << " " << length;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < inner; ++k) {
      const auto want = sorted(elements, k + inner * length * o, inner, length);
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(got[k + inner * (i + count * o)], want[i])
            << dtypeToString(type) << " " << length << " line " << k << "," << o << " at " << i;
      }
    }
  }
}

TEST(ArgsortTest, EveryTypeInTheOrderOfAStableSort) {
  for (int i = 0; i < kDtypeCount; ++i) {
    const auto type = static_cast<dtype>(i);
    dispatchType(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t length : {1, 2, 31, 32, 33, 257, 5000}) {
        expectOrder<T>(type, 1, length, 3, length);
        expectOrder<T>(type, 3, length, 2, (length + 1) / 2);
      }
    });
  }
}

size_t scratchOf(dtype type, Shape shape, Dim count) {
  Shape sorted = shape;
  sorted[0] = count;
  return prepareLibrary({ir::Op::Argsort, {0, count}, {{type, shape}}, {dtype::s64, sorted}})
      ->scratchBytes();
}

// A key and an index for each element of a line, for each of 64 ranges of lines at most; or, while
// a few are selected, for so many as are kept and as a tile has, and the least keys of tiles.
TEST(ArgsortTest, ScratchMemoryIsALineForEachRange) {
  EXPECT_EQ(scratchOf(dtype::f32, {1000}, 1000), 8000u);
  EXPECT_EQ(scratchOf(dtype::f16, {1000}, 1000), 4032u) << "whole cache lines";
  EXPECT_EQ(scratchOf(dtype::f16, {70'000}, 70'000), 560'000u);
  EXPECT_EQ(scratchOf(dtype::s64, {70'000}, 70'000), 1'120'000u);
  EXPECT_EQ(scratchOf(dtype::f32, {1000}, 5), 1408u + 576u) << "of 170 elements, and 144 keys";
  EXPECT_EQ(scratchOf(dtype::f32, {1000, 16}, 1000), 8000u) << "one range";
  EXPECT_EQ(scratchOf(dtype::f32, {1000, 17}, 1000), 16'000u);
  EXPECT_EQ(scratchOf(dtype::f32, {1000, 1'000'000}, 1000), 64 * 8000u);
  EXPECT_EQ(scratchOf(dtype::f32, {0, 5}, 0), 0u);
}

}  // namespace
}  // namespace fl::library
