// What holds for every copy of a module, however it was made.
#pragma once

#include <gtest/gtest.h>

#include <typeinfo>
#include <vector>

#include "fl/nn/Utils.h"
#include "fl/nn/modules/Module.h"
#include "tests/Values.h"

namespace fl::test {

inline std::vector<std::vector<float>> outputsOf(Module& module,
                                                 const std::vector<Variable>& inputs) {
  std::vector<std::vector<float>> values;
  for (const Variable& output : module.forward(inputs)) {
    values.push_back(valuesOf(output.tensor()));
  }
  return values;
}

// `copy`, in evaluation mode as `original` is, gives what that one gives, and shares no parameter
// and no other state with it.
inline void expectIndependentCopy(Module& original, Module& copy,
                                  const std::vector<Variable>& inputs) {
  EXPECT_EQ(typeid(copy), typeid(original));
  EXPECT_EQ(copy.prettyString(), original.prettyString());
  ASSERT_TRUE(allParamsClose(original, copy, 1e-12));
  const auto expected = outputsOf(original, inputs);
  EXPECT_EQ(outputsOf(copy, inputs), expected);
  // In training mode it goes on from the copied parameters.
  copy.train();
  for (int i = 0; i < copy.numParamTensors(); ++i) {
    EXPECT_TRUE(copy.param(i).isCalcGrad());
    EXPECT_FALSE(original.param(i).isCalcGrad());
    copy.param(i).tensor() *= 1.5;
    copy.param(i).tensor() += 0.25;
  }
  outputsOf(copy, inputs);
  EXPECT_EQ(outputsOf(original, inputs), expected);
  copy.eval();
  if (copy.numParamTensors() > 0) {
    EXPECT_NE(outputsOf(copy, inputs), expected);
  }
}

}  // namespace fl::test
