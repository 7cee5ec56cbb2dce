#include "fl/library/SmallProduct.h"

#include <bit>
#include <cstring>

namespace fl::library {

namespace {

using Vector = float __attribute__((vector_size(8 * sizeof(float))));
using Half = float __attribute__((vector_size(4 * sizeof(float))));
using Quarter = float __attribute__((vector_size(2 * sizeof(float))));
constexpr int64_t kLanes = sizeof(Vector) / sizeof(float), kColumns = 4;
static_assert(kLanes == SmallProduct::kElementsOfStep);
// Of sums, to begin.
constexpr int64_t kStepsOfSums = 4;

template <class T>
void load(T& vector, const float* from) {
  std::memcpy(&vector, from, sizeof(vector));
}
void load(float& number, const float* from) { number = *from; }

// Vectors, then halves, quarters and an element, for so many elements.
int64_t partsOf(int64_t count) {
  return count / kLanes + std::popcount(static_cast<uint64_t>(count % kLanes));
}

}  // namespace

// A row times columns: lanes of a vector lie along k.
bool SmallProduct::hasDots() const { return m == 1 && !transposeRhs; }

int64_t SmallProduct::steps() const {
  if (hasDots()) return n * (k / kLanes + k % kLanes + kStepsOfSums);
  const int64_t blocks = (n + kColumns - 1) / kColumns * partsOf(m);
  return blocks * (k + kStepsOfSums) + (transposeLhs ? m * k : 0);
}

void SmallProduct::run(const float* lhs, const float* rhs, float* out, int64_t count,
                       float* copy) const {
  for (; count > 0; --count, lhs += lhsStep, rhs += rhsStep, out += m * n) {
    for (int64_t row = 0; transposeLhs && row < m; ++row)
      for (int64_t i = 0; i < k; ++i) copy[i * m + row] = lhs[row * k + i];
    multiply(transposeLhs ? copy : lhs, rhs, out);
  }
}

void SmallProduct::multiply(const float* lhs, const float* rhs, float* out) const {
  for (int64_t left = n; left > 0; left -= kColumns) {
    if (left >= kColumns) multiplyColumns<kColumns>(lhs, rhs, out);
    if (left == 3) multiplyColumns<3>(lhs, rhs, out);
    if (left == 2) multiplyColumns<2>(lhs, rhs, out);
    if (left == 1) multiplyColumns<1>(lhs, rhs, out);
    rhs += kColumns * (transposeRhs ? 1 : k);
    out += kColumns * m;
  }
}

template <int64_t columns>
void SmallProduct::multiplyColumns(const float* lhs, const float* rhs, float* out) const {
  if (hasDots()) {
    for (int64_t i = 0; i < columns; ++i) out[i] = dot(lhs, rhs + i * k);
    return;
  }
  int64_t row = 0;
  const auto take = [&]<class T>(T) {
    sum<columns, T>(lhs + row, rhs, out + row);
    row += static_cast<int64_t>(sizeof(T) / sizeof(float));
  };
  while (row + kLanes <= m) take(Vector());
  if (row + 4 <= m) take(Half());
  if (row + 2 <= m) take(Quarter());
  if (row < m) take(float());
}

// Of two runs of memory.
float SmallProduct::dot(const float* lhs, const float* rhs) const {
  Vector sums{};
  int64_t i = 0;
  for (; i + kLanes <= k; i += kLanes) {
    Vector x, y;
    load(x, lhs + i);
    load(y, rhs + i);
    sums += x * y;
  }
  float sum = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  for (; i < k; ++i) sum += lhs[i] * rhs[i];
  return sum;
}

// Of one row, or of some that lie side by side, times some columns.
template <int64_t columns, class T>
void SmallProduct::sum(const float* lhs, const float* rhs, float* out) const {
  const int64_t step = transposeRhs ? n : 1, next = transposeRhs ? 1 : k;
  T sums[columns];
#pragma GCC unroll 4
  for (T& sum : sums) sum = T{};
  for (int64_t i = 0; i < k; ++i, lhs += m, rhs += step) {
    T rows;
    load(rows, lhs);
#pragma GCC unroll 4
    for (int64_t column = 0; column < columns; ++column) sums[column] += rows * rhs[column * next];
  }
#pragma GCC unroll 4
  for (int64_t column = 0; column < columns; ++column)
    std::memcpy(out + column * m, &sums[column], sizeof(T));
}

}  // namespace fl::library
