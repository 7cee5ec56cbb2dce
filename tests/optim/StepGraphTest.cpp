// What becomes of the steps when they are recorded: launches. Kernels are compiled before they run
// (FL_JIT=sync), so that the counters are exact.
#include <gtest/gtest.h>

#include "fl/autograd/Functions.h"
#include "fl/fl.h"
#include "tests/lazy/Counts.h"
#include "tests/optim/AllOptimizers.h"

namespace fl::test {
namespace {

// Parameters of one to three dimensions; one has one element.
std::vector<Variable> makeParameters(int count) {
  std::vector<Variable> parameters;
  for (int i = 0; i < count; ++i) {
    const Dim size = 16 + i;
    parameters.emplace_back(rand(i == 4       ? Shape({1})
                                 : i % 3 == 0 ? Shape({size})
                                 : i % 3 == 1 ? Shape({size, 3})
                                              : Shape({3, size, 50})),
                            true);
  }
  return parameters;
}

void giveGradients(const std::vector<Variable>& parameters) {
  for (Variable parameter : parameters) {
    giveGradient(parameter);
    fl::eval(parameter.grad().tensor());
  }
  sync();
}

// Gradients that are there already: what remains are the updates.
uint64_t launchesOfAStep(const MakeOptimizer& make, int parameterCount) {
  const std::vector<Variable> parameters = makeParameters(parameterCount);
  const auto optimizer = make(parameters);
  uint64_t launches = 0;
  for (int step = 0; step < 3; ++step) {
    giveGradients(parameters);
    const testing::Counts counts;
    optimizer->step();
    sync();
    launches = counts.launches();
  }
  return launches;
}

TEST(StepGraph, OneLaunchUpdatesAllParameters) {
  for (const MakeOptimizer& make : allOptimizers()) {
    const std::string name = make({})->prettyString();
    // Novograd needs two numbers for each parameter: the squares of its gradient and what it keeps
    // of them. Where nothing else takes memory, those of all would take more than in the order
    // recorded. The square of one element is no sum.
    EXPECT_EQ(launchesOfAStep(make, 20), name.starts_with("Novograd") ? 3u * 20 - 1 : 1u) << name;
  }
}

}  // namespace
}  // namespace fl::test
