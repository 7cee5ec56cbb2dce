// The error of unary functions in f32 against the C library in double, by the compiled kernel and
// in the tile interpreter. `vector_math` goes through all numbers, tests/benchmarks through a
// sample.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fl/tensor/tensor.h"

namespace fl::bench {

struct UnaryFunction {
  std::string name;
  double bound;  // units in the last place
  std::function<Tensor(const Tensor&)> apply;
  double (*reference)(double);
};

// The unary rows of the op table, with its bounds, and sigmoid.
std::vector<UnaryFunction> unaryFunctions();

// |got - want| in units of the last place of `want` rounded to f32; below the normal numbers that
// is the smallest subnormal number. Infinite for a NaN, an infinity or a zero's sign that is not
// wanted; infinities of finite numbers count as 2^128.
double ulpError(float got, double want);

// What was found for one function.
struct Accuracy {
  uint64_t arguments = 0;
  double worst = 0;  // ulpError
  float x = 0;       // where
  float got = 0;
  double want = 0;
  uint64_t different = 0;  // arguments where the kernel and the tiles give other bits (but NaN)

  void add(const Accuracy& other);
};

// Of the function at all of x: kernels in the lazy backend, tiles in the eager one.
Accuracy measureAccuracy(const UnaryFunction& function, const std::vector<float>& x);

// A Markdown table.
std::string accuracyTable(const std::vector<UnaryFunction>& functions,
                          const std::vector<Accuracy>& found);

}  // namespace fl::bench
