// topk() and what it shares with sort(), on whatever backend the environment chooses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "fl/tensor/tensor.h"

namespace fl {
namespace {

TEST(Order, TopkIsTheFrontOfSort) {
  // Few values, so that many are equal, and a NaN in every line.
  setSeed(1);
  Tensor x = rint(rand({7, 40, 3}) * 5.0);
  x(2) = std::nanf("");
  x(span, 11) = std::nanf("");
  x(span, span, 1) = std::nanf("");
  for (const dtype type : {dtype::f32, dtype::f16, dtype::f64, dtype::s32, dtype::u8}) {
    const Tensor input = x.astype(type);
    for (int axis = 0; axis < 3; ++axis) {
      for (const SortMode mode : {SortMode::Ascending, SortMode::Descending}) {
        Tensor sorted, order, values, indices;
        sort(sorted, order, input, axis, mode);
        for (const Dim k : {Dim{1}, input.dim(axis) / 2 + 1, input.dim(axis)}) {
          std::vector<Index> front(3, span);
          front[axis] = range(0, k);
          topk(values, indices, input, k, axis, mode);
          EXPECT_EQ(values.type(), type);
          EXPECT_EQ(indices.toHostVector<unsigned>(), order(front).toHostVector<unsigned>());
          // Of the bytes, for NaN.
          const Tensor wanted = sorted(front).copy();
          std::vector<char> got(values.bytes()), want(wanted.bytes());
          values.host<void>(got.data());
          wanted.host<void>(want.data());
          EXPECT_EQ(got, want) << type << " axis " << axis << " k " << k;
        }
      }
    }
  }
}

// In the order of the line, against it, and with many equal elements.
TEST(Order, TopkOfFewInALongLine) {
  const Tensor rising = arange(Shape({3000}), 0);
  for (const Tensor& line : {rising, -rising, rint(sin(rising) * 20.0)}) {
    for (const SortMode mode : {SortMode::Ascending, SortMode::Descending}) {
      const Tensor order = argsort(line, 0, mode);
      for (const int k : {1, 7, 100, 187, 188}) {
        Tensor values, indices;
        topk(values, indices, line, k, 0, mode);
        EXPECT_EQ(indices.toHostVector<unsigned>(), order(range(0, k)).toHostVector<unsigned>());
        EXPECT_EQ(values.toHostVector<float>(), line(order(range(0, k))).toHostVector<float>());
      }
    }
  }
}

// Lines of the values 0 to 59, sorted upwards and downwards, all equal and mixed, with NaN, as
// lines one behind the other and side by side.
Tensor linesOfAllKinds(Dim inner, Dim length, dtype type) {
  const Tensor place = arange({1, length}, 1), mixed = rint(rand({inner, length}) * 59.0);
  const Tensor line = arange({inner, length}, 0);
  Tensor x = where(line == 1.0, floor(place * (59.0 / length)), mixed);
  x = where(line == 2.0, floor((place * -1.0 + (length - 1.0)) * (59.0 / length)), x);
  x = where(line == 3.0, 7.0, x);
  if (!isFloating(type)) return x.astype(type);
  x = where(x == 30.0, -0.0, where(x == 31.0, 0.0, x));
  x = where(line == 4.0 || x == 40.0, std::nanf(""), x);
  return x.astype(type);
}

// The indices that stable_sort gives, NaN last.
std::vector<unsigned> stableOrder(const std::vector<double>& values, SortMode mode) {
  std::vector<unsigned> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](unsigned i, unsigned j) {
    const double x = values[i], y = values[j];
    return mode == SortMode::Ascending ? x < y || (x == x && y != y) : x > y || (x == x && y != y);
  });
  return order;
}

// Around the lengths at which lines are cut in other ways.
TEST(Order, AgainstStableSort) {
  setSeed(2);
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::f64, dtype::s16, dtype::s32,
                           dtype::s64, dtype::u8, dtype::u16, dtype::u32, dtype::u64}) {
    for (const Dim length : {20, 21, 255, 256, 271, 391, 1100}) {
      const Tensor input = linesOfAllKinds(21, length, type), turned = transpose(input);
      const auto values = turned.astype(dtype::f64).toHostVector<double>();
      for (const SortMode mode : {SortMode::Ascending, SortMode::Descending}) {
        std::vector<std::vector<unsigned>> wanted;
        for (auto line = values.begin(); line != values.end(); line += length) {
          wanted.push_back(stableOrder({line, line + length}, mode));
        }
        for (const Dim k : {Dim{1}, Dim{8}, length / 17, length}) {
          if (k == 0) continue;
          Tensor found, across, along;
          topk(found, across, input, k, 1, mode);
          topk(found, along, turned, k, 0, mode);
          const auto sideBySide = transpose(across).toHostVector<unsigned>();
          std::vector<unsigned> first;
          for (const auto& line : wanted) first.insert(first.end(), line.begin(), line.begin() + k);
          EXPECT_EQ(sideBySide, first) << type << " length " << length << " k " << k;
          EXPECT_EQ(along.toHostVector<unsigned>(), first)
              << type << " length " << length << " k " << k;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fl
