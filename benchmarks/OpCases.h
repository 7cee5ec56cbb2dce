// What `ops` measures: calls of the tensor API. Unary, binary and reduction rows of the op table
// have cases by themselves; the other rows and the composites are listed in OpCases.cpp.
// tests/benchmarks checks that every row of the op table occurs in some case.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fl/tensor/tensor.h"

namespace fl::bench {

struct OpCase {
  std::string name;  // the operator's, then what else says which case it is, then the dtype
  dtype type;
  // True if its arithmetic takes less time than its memory when nothing fits the caches.
  bool memoryBound;
  // Inputs of about `elements` elements, a power of 4, made on the backend in scope.
  std::function<std::vector<Tensor>(Dim elements)> inputs;
  std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)> run;
};

std::vector<OpCase> opCases();

}  // namespace fl::bench
