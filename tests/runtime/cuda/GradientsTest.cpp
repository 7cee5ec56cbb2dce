// The gradients of every function (tests/autograd/GradientCalls.h) on the device `cuda` (Gpu.h):
// those of the CPU's kernels, to the bit where no library makes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fl/fl.h"
#include "fl/runtime/Counters.h"
#include "tests/autograd/GradientCalls.h"
#include "tests/runtime/cuda/Gpu.h"
#include "tests/runtime/cuda/WithoutLibraries.h"

namespace fl::testing {
namespace {

// The result, and the gradient of each input for one that is 1, 2, 3, ...
std::vector<std::vector<double>> resultsOf(const test::GradientCall& call, TensorBackend& backend) {
  const BackendScope scope(backend);
  std::vector<Variable> inputs;
  for (const Tensor& input : call.inputs) inputs.emplace_back(input, true);
  Variable result = call(inputs);
  const Shape shape = result.shape();
  result.backward(noGrad(reshape(arange<Dim>(1, 1 + shape.elements(), 1, dtype::f64), shape)));
  std::vector<std::vector<double>> values = {test::valuesOf(result.tensor())};
  for (const Variable& input : inputs) values.push_back(test::valuesOf(input.grad().tensor()));
  return values;
}

TEST(CudaGradients, AreTheCpus) {
  if (!gpuProblem().empty()) GTEST_SKIP() << gpuProblem();
  const uint64_t fallbacks = runtime::counters().fallbacks;
  for (const test::GradientCall& call : test::gradientCalls()) {
    SCOPED_TRACE(call.text);
    const auto expected = resultsOf(call, cpuWithoutLibraries());
    const uint64_t libraryCalls = runtime::counters().libraryCalls;
    const auto actual = resultsOf(call, getBackend("lazy", "cuda"));
    const bool isExact = runtime::counters().libraryCalls == libraryCalls;
    for (size_t i = 0; i < expected.size(); ++i)
      test::expectNear(actual[i], expected[i], isExact ? 0 : 1e-12);
  }
  EXPECT_EQ(runtime::counters().fallbacks, fallbacks);
  EXPECT_THAT(takeMisuse(), ::testing::ElementsAre());
}

}  // namespace
}  // namespace fl::testing
