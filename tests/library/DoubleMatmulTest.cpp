// Products of f64 matrices against sums in long double, around the edges of tiles and blocks: the
// same bits on any number of threads and with the instructions of older processors.
#include "fl/library/Functions.h"
#include "tests/FlagScope.h"
#include "tests/library/LibraryHarness.h"

namespace fl::library {
namespace {

struct Case {
  int64_t m, n, k;
  int64_t lhsBatch = 0, rhsBatch = 0;  // 0: two dimensions
  bool transposeLhs = false, transposeRhs = false;

  static Shape shape(int64_t rows, int64_t columns, bool transposed, int64_t batch) {
    Shape made = transposed ? Shape{columns, rows} : Shape{rows, columns};
    if (batch > 0) made.get().push_back(batch);
    return made;
  }
  LibraryCall call() const {
    return {Op::Matmul,
            {transposeLhs, transposeRhs, 0},
            {{dtype::f64, shape(m, k, transposeLhs, lhsBatch)},
             {dtype::f64, shape(k, n, transposeRhs, rhsBatch)}},
            {dtype::f64, shape(m, n, false, std::max(lhsBatch, rhsBatch))}};
  }
  int64_t lhsElement(int64_t row, int64_t i, int64_t batch) const {
    return (lhsBatch > 0 ? batch * m * k : 0) + (transposeLhs ? i + k * row : row + m * i);
  }
  int64_t rhsElement(int64_t i, int64_t column, int64_t batch) const {
    return (rhsBatch > 0 ? batch * k * n : 0) + (transposeRhs ? column + n * i : i + k * column);
  }
};

using Doubles = std::vector<double>;

Doubles randomDoubles(int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Doubles values(count);
  for (double& value : values) value = uniform(generator);
  return values;
}

// Result and scratch memory start as NaN.
Doubles run(const LibraryFunction& function, int64_t elements, const Doubles& x, const Doubles& y,
            int threads) {
  host::ThreadPool pool(threads);
  Guarded result(elements * sizeof(double), 0xFF), scratch(function.scratchBytes(), 0xFF);
  void* const operands[] = {const_cast<double*>(x.data()), const_cast<double*>(y.data())};
  function.run(operands, result.data(), scratch.data(), pool);
  EXPECT_TRUE(result.guardsIntact());
  EXPECT_TRUE(scratch.guardsIntact());
  Doubles values(elements);
  std::memcpy(values.data(), result.data(), elements * sizeof(double));
  return values;
}

void expectSums(const Case& c, const Doubles& x, const Doubles& y, const Doubles& got) {
  for (size_t at = 0; at < got.size(); ++at) {
    const auto index = static_cast<int64_t>(at);
    const int64_t row = index % c.m, column = index / c.m % c.n, batch = index / (c.m * c.n);
    long double sum = 0, magnitude = 0;
    for (int64_t i = 0; i < c.k; ++i) {
      const long double term = static_cast<long double>(x[c.lhsElement(row, i, batch)]) *
                               y[c.rhsElement(i, column, batch)];
      sum += term;
      magnitude += std::fabs(term);
    }
    // Not "greater": a NaN must fail.
    ASSERT_TRUE(std::fabs(got[at] - sum) <= 16 * 0x1p-53L * magnitude)
        << "row " << row << " column " << column << " of " << batch << ": " << got[at] << ", not "
        << static_cast<double>(sum);
  }
}

void check(const Case& c) {
  const LibraryCall call = c.call();
  SCOPED_TRACE(::testing::Message()
               << call.operands[0].toString() << " x " << call.operands[1].toString()
               << " transposed " << c.transposeLhs << c.transposeRhs);
  const Doubles x = randomDoubles(call.operands[0].shape.elements(), 1);
  const Doubles y = randomDoubles(call.operands[1].shape.elements(), 2);
  Doubles first;
  for (const char* cpu : {"", "x86-64-v3"}) {
    const fl::testing::FlagScope scope(&Flags::cpu, cpu);
    const auto function = prepareMatmul(call);
    for (const int threads : {1, 2, 3}) {
      const Doubles got = run(*function, call.result.shape.elements(), x, y, threads);
      if (first.empty()) first = got;
      EXPECT_EQ(std::memcmp(first.data(), got.data(), got.size() * sizeof(double)), 0)
          << threads << " threads, cpu " << cpu;
    }
  }
  expectSums(c, x, y, first);
}

void checkTransposed(Case c) {
  for (const bool lhs : {false, true}) {
    for (const bool rhs : {false, true}) {
      c.transposeLhs = lhs;
      c.transposeRhs = rhs;
      check(c);
    }
  }
}

TEST(DoubleMatmul, AgreesWithSumsAroundTheEdgesOfTiles) {
  for (const int64_t m : {1, 3, 4, 5, 8, 12, 13, 16, 23, 24, 25, 49})
    for (const int64_t n : {1, 2, 4, 5, 7, 8, 9, 17}) checkTransposed({m, n, 11});
}

TEST(DoubleMatmul, AgreesWithSumsAroundTheEdgesOfBlocks) {
  for (const int64_t k : {1, 7, 8, 9, 255, 256, 257, 513}) checkTransposed({26, 10, k});
  for (const int64_t size : {263, 264, 265, 290}) {
    checkTransposed({size, 9, 40});
    checkTransposed({9, size, 40});
    checkTransposed({size, size, 13});
  }
  checkTransposed({130, 140, 300});
}

TEST(DoubleMatmul, AgreesWithSumsForVectors) {
  for (const int64_t size : {1, 8, 24, 100, 513, 1100}) {
    checkTransposed({size, 1, 300});
    checkTransposed({1, size, 300});
  }
  checkTransposed({1, 1, 2000});
}

TEST(DoubleMatmul, AgreesWithSumsForBatches) {
  for (const auto& [lhs, rhs] : {std::pair{1, 1}, {5, 5}, {0, 5}, {5, 0}}) {
    checkTransposed({13, 9, 7, lhs, rhs});
    checkTransposed({1, 30, 7, lhs, rhs});
    checkTransposed({30, 1, 7, lhs, rhs});
    checkTransposed({270, 70, 30, lhs, rhs});
  }
  checkTransposed({6, 7, 8, 900, 900});
}

// A row that holds one makes no other row infinite.
TEST(DoubleMatmul, KeepsInfinityInItsRow) {
  const LibraryCall call = Case{5, 3, 4}.call();
  Doubles x(20, 1.0), y(12, 1.0);
  x[4] = HUGE_VAL;  // row 4
  const Doubles got = run(*prepareMatmul(call), 15, x, y, 1);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(got[i], i % 5 == 4 ? HUGE_VAL : 4.0);
}

}  // namespace
}  // namespace fl::library
