// The error of unary functions against the C library in a wider format, by the compiled kernel and
// in the tile interpreter. `vector_math` goes through all numbers of f32, f16 and bf16 and many of
// f64, tests/benchmarks through a sample.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fl/tensor/tensor.h"

namespace fl::bench {

struct UnaryFunction {
  std::string name;
  double bound;    // units in the last place
  double bound64;  // of f64, where exp's is 1.01
  std::function<Tensor(const Tensor&)> apply;
  double (*reference)(double);
  long double (*wide)(long double);  // for f64; null where the function is exact
};

// The unary rows of the op table, with its bounds, and sigmoid.
std::vector<UnaryFunction> unaryFunctions();

// |got - want| in units of the last place of `want` rounded to f32; below the normal numbers that
// is the smallest subnormal number. Infinite for a NaN, an infinity or a zero's sign that is not
// wanted; infinities of finite numbers count as 2^128.
double ulpError(float got, double want);

// The same in any floating dtype.
double ulpError(double got, long double want, dtype type);

// What was found for one function.
struct Accuracy {
  uint64_t arguments = 0;
  double worst = 0;  // ulpError
  double x = 0;      // where
  double got = 0;
  double want = 0;
  uint64_t different = 0;  // arguments where the kernel and the tiles give other bits (but NaN)

  void add(const Accuracy& other);
};

// Of the function at all of x: kernels in the lazy backend, tiles in the eager one.
Accuracy measureAccuracy(const UnaryFunction& function, const std::vector<float>& x);
// At all of x, which are numbers of `type`.
Accuracy measureAccuracy(const UnaryFunction& function, dtype type, const std::vector<double>& x);

// All numbers of a 16-bit float, and `count` of f64: of any bits, and where functions are curved.
std::vector<double> allOfSixteenBits(dtype type);
std::vector<double> sampleOfDoubles(size_t count);

// What rounding to a 16-bit float may add up to.
inline constexpr double kSixteenBitBound = 0.52;

// Markdown tables: of f32 or f64, and of f16 and bf16.
std::string accuracyTable(const std::vector<UnaryFunction>& functions,
                          const std::vector<Accuracy>& found, dtype type);
std::string sixteenBitTable(const std::vector<UnaryFunction>& functions,
                            const std::vector<Accuracy>& f16, const std::vector<Accuracy>& bf16);

}  // namespace fl::bench
