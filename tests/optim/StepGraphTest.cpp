// What becomes of the steps when they are recorded: plans, kernels, launches. Kernels are compiled
// before they run (FL_JIT=sync), so that the counters are exact.
#include <gtest/gtest.h>

#include "fl/autograd/Functions.h"
#include "fl/fl.h"
#include "tests/lazy/Counts.h"
#include "tests/optim/AllOptimizers.h"

namespace fl::test {
namespace {

// The learning rate, the corrections of Adam's moments and the count of steps are arguments.
TEST(StepGraph, IsCompiledOnceWhateverTheLearningRate) {
  Sequential model;
  model.add(Linear(4, 8));
  model.add(Tanh());
  model.add(Linear(8, 1));
  AdamOptimizer optimizer(model.params(), 0);
  const LrSchedule schedule = linearWarmup(20, cosineAnnealing(1e-2, 180));
  const Variable x = input(rand({4, 16})), y = input(rand({1, 16}));
  sync();  // the first step shall begin with values, as all others do
  double last = 0;
  const auto step = [&](int number) {
    optimizer.setLr(schedule(number));
    optimizer.zeroGrad();
    Variable loss = MeanSquaredError()(model(x), y);
    loss.backward();
    optimizer.step();
    last = loss.scalar<float>();
  };
  step(0);
  const double first = last;
  const testing::Counts counts;
  for (int number = 1; number < 200; ++number) {
    step(number);
  }
  EXPECT_EQ(counts.realizes(), 199u);
  EXPECT_EQ(counts.plansBuilt(), 0u);
  EXPECT_EQ(counts.kernelsCompiled(), 0u);
  EXPECT_EQ(counts.fallbacks(), 0u);
  EXPECT_LT(last, first);
}

// Gradients that are there already: what remains are the updates.
uint64_t launchesOfAStep(const MakeOptimizer& make, int parameterCount) {
  std::vector<Variable> parameters;
  for (int i = 0; i < parameterCount; ++i) {
    parameters.emplace_back(rand({16 + i, 3}), true);
  }
  const auto optimizer = make(parameters);
  uint64_t launches = 0;
  for (int step = 0; step < 3; ++step) {
    for (Variable& parameter : parameters) {
      giveGradient(parameter);
      fl::eval(parameter.grad().tensor());
    }
    sync();
    const testing::Counts counts;
    optimizer->step();
    sync();
    launches = counts.launches();
  }
  return launches;
}

TEST(StepGraph, ALaunchAParameterAtMost) {
  for (const MakeOptimizer& make : allOptimizers()) {
    const std::string name = make({})->prettyString();
    const uint64_t launches = launchesOfAStep(make, 20);
    std::cout << name << ": " << launches << " launches for 20 parameters\n";
    // Novograd's norm is a reduction before the update.
    EXPECT_LE(launches, name.starts_with("Novograd") ? 60u : 20u) << name;
  }
}

}  // namespace
}  // namespace fl::test
