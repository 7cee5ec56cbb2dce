// Calls of every function of fl/autograd/Functions.h that has a gradient, on f64: beside those of
// the tests of single functions, in options, and of shapes, that these leave out.
#pragma once

#include <string>
#include <vector>

#include "tests/autograd/GradientCheck.h"

namespace fl::test {

struct GradientCall {
  std::string text;  // as it stands in the source
  Function function;
  std::vector<Tensor> inputs;

  std::string name() const { return text.substr(0, text.find('(')); }
  // With the same draws each time.
  Variable operator()(const std::vector<Variable>& variables) const;
};

std::vector<GradientCall> gradientCalls();

}  // namespace fl::test
