// Special values of every dtype, and what a correct result may look like: the arithmetic of the
// edge tests. It is independent of fl: C++ numbers, rounding and wrapping are written out here.
// EdgeRows.h states the expected results of the operators, EdgeTest.cpp and EdgeReduceTest.cpp run
// them.
#pragma once

#include <string>
#include <vector>

#include "fl/tensor/tensor.h"

namespace fl::testing {

// Holds every element of every integer dtype.
using Whole = __int128;

// An element: `real` if the dtype is floating, else `whole`. b8 counts as a signed integer.
struct Scalar {
  dtype type = dtype::f64;
  double real = 0;
  Whole whole = 0;
};

// Rounded to nearest even, 16-bit floats through f32; wrapped to the width.
Scalar realScalar(double value, dtype type);
Scalar wholeScalar(Whole value, dtype type);

// The stored element in the low bytes, and back.
uint64_t encode(const Scalar& value);
Scalar decode(uint64_t bits, dtype type);
std::string toString(const Scalar& value);

// The distance of neighbouring numbers of a floating dtype at x, which is finite.
double unitOf(double x, dtype type);
int widthOf(dtype type);
Whole smallestOf(dtype type);
Whole largestOf(dtype type);

const std::vector<dtype>& floatTypes();
const std::vector<dtype>& integerTypes();
const std::vector<dtype>& allTypes();

// NaN, infinities, zeros, the ends of the subnormal and normal ranges, and ordinary numbers; for
// integers the ends, powers of two and the shift counts around the width.
std::vector<Scalar> specialsOf(dtype type);
// What is worth converting from `type`: also the ends of all integer dtypes and ties in rounding.
std::vector<Scalar> castOperandsOf(dtype type);

// True if `got` is `want`: NaN for NaN, else the same number with the same sign. An approximation
// may be a few units off where `want` is neither zero nor infinite, but is not flushed to zero.
bool matches(const Scalar& got, const Scalar& want, bool approximated = false);

// Elements [first, first + count) of `bits`, taken cyclically, as a tensor of one dimension.
Tensor makeTensor(const std::vector<uint64_t>& bits, dtype type, size_t first, size_t count);
Tensor makeTensor(const Shape& shape, const std::vector<uint64_t>& bits, dtype type);
std::vector<uint64_t> bitsOf(const Tensor& tensor);

// What fused operators stand between in the tests: both leave every element as it is.
Tensor timesOne(const Tensor& x);
Tensor whereTrue(const Tensor& x);
// Fails unless one kernel ran since `launchesBefore`, on devices that have kernels.
void expectOneKernel(uint64_t launchesBefore);

}  // namespace fl::testing
