// Expected results of every elementwise operator, from the C++ library and C's integer rules alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fl/ir/Op.h"
#include "tests/tensor/EdgeValues.h"

namespace fl::testing {

// Operands of one element; `width` is that of their dtype.
template <typename T>
struct Operands {
  T x, y, z;
  int width;
};

struct EdgeRow {
  enum Accuracy {
    Exact,         // defined by rounding, or no rounding happens
    Approximated,  // a few units off, exact where the result is zero, infinite or NaN
  };

  std::string name;
  std::function<Tensor(const std::vector<Tensor>&)> apply;
  Accuracy accuracy;
  // Empty where the operator takes no such dtype. Rounded or wrapped by the caller.
  std::function<double(const Operands<double>&)> real;
  std::function<Whole(const Operands<Whole>&)> whole;
};

// nullptr if there is no row for `op`.
const EdgeRow* findEdgeRow(ir::Op op);

// The rule of op Cast.
Scalar castScalar(const Scalar& value, dtype type);

}  // namespace fl::testing
