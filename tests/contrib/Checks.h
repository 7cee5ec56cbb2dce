// What tests of fl/contrib share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fl/contrib/contrib.h"
#include "fl/nn/nn.h"
#include "fl/tensor/Random.h"
#include "tests/ErrorOf.h"
#include "tests/Values.h"

namespace fl::test {

inline std::vector<float> valuesOf(const Variable& variable) { return valuesOf(variable.tensor()); }

// The one output of a module.
inline Variable outputOf(Module& module, const std::vector<Variable>& inputs) {
  return module.forward(inputs).at(0);
}

// A padding mask that is not there.
inline Variable noMask() { return Variable(); }

template <typename Call>
void expectError(const std::string& words, Call&& call) {
  const std::string error = errorOf(call);
  EXPECT_NE(error.find(words), std::string::npos) << "instead of " << words << ": " << error;
}

}  // namespace fl::test
