// What becomes of the steps when they are recorded: plans, kernels, launches, memory. Kernels are
// compiled before they run (FL_JIT=sync), so that the counters are exact.
#include <gtest/gtest.h>

#include <numeric>

#include "fl/autograd/Functions.h"
#include "fl/fl.h"
#include "tests/lazy/BufferLog.h"
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

// Parameters of one to three dimensions.
std::vector<Variable> makeParameters(int count) {
  std::vector<Variable> parameters;
  for (int i = 0; i < count; ++i) {
    const Dim size = 16 + i;
    parameters.emplace_back(rand(i % 3 == 0   ? Shape({size})
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
    // Novograd makes a norm, and of it a number, for each parameter: more at once would take
    // memory.
    EXPECT_EQ(launchesOfAStep(make, 20), name.starts_with("Novograd") ? 60u : 1u) << name;
  }
}

// No second copy of parameters or state.
TEST(StepGraph, UpdatesInPlace) {
  for (const MakeOptimizer& make : allOptimizers()) {
    const std::vector<Variable> parameters = makeParameters(20);
    size_t bytes = 0;
    for (const Variable& parameter : parameters) {
      bytes += parameter.bytes();
    }
    const auto optimizer = make(parameters);
    for (int step = 0; step < 3; ++step) {
      giveGradients(parameters);
      const std::vector<size_t> made = testing::buffersMade([&] {
        optimizer->step();
        sync();
      });
      EXPECT_LE(std::accumulate(made.begin(), made.end(), size_t{0}), bytes / 20)
          << optimizer->prettyString() << " in step " << step;
    }
  }
}

}  // namespace
}  // namespace fl::test
