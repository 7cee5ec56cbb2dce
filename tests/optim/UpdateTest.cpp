// What an optimizer's step costs: one launch for all parameters, whatever their shapes, and no
// second copy of what it updates.
#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <vector>

#include "fl/autograd/Functions.h"
#include "fl/optim/optim.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/tensor/tensor.h"
#include "tests/lazy/Counts.h"

namespace fl::test {
namespace {

const std::vector<Shape> kShapes = {{100, 50}, {50}, {3, 3, 8, 16}, {2}, {16}, {700, 300}, {300}};

class UpdateTest : public ::testing::Test {
 protected:
  UpdateTest() {
    for (const Shape& shape : kShapes) {
      parameters_.emplace_back(full(shape, 0.5), true);
    }
  }

  // Gradients of 2 w, which are in memory.
  void makeGradients() {
    for (Variable& parameter : parameters_) {
      parameter.zeroGrad();
      sum(parameter * parameter, {}).backward();
      parameter.grad().tensor().scalar<float>();
    }
  }
  void read() {
    for (Variable& parameter : parameters_) {
      fl::eval(parameter.tensor());
    }
    parameters_[0].tensor().toHostVector<float>();
  }

  const BackendScope scope_{"lazy"};
  std::vector<Variable> parameters_;
};

TEST_F(UpdateTest, OneLaunchForAllParameters) {
  AdamOptimizer optimizer(parameters_, 0.1);
  for (int step = 0; step < 4; ++step) {
    makeGradients();
    const testing::Counts counts;
    optimizer.step();
    read();
    EXPECT_EQ(counts.launches(), 1u) << step;
  }
}

// Bytes of the buffers that `work` makes.
size_t bytesMade(const std::function<void()>& work) {
  std::stringstream log;
  runtime::setMemoryLogStream(&log);
  runtime::setMemoryLogging(true);
  work();
  runtime::setMemoryLogging(false);
  runtime::setMemoryLogStream(nullptr);
  size_t made = 0;
  std::string event, address;
  for (size_t bytes = 0; log >> event >> address >> bytes;) {
    made += event == "alloc" ? bytes : 0;
  }
  return made;
}

TEST_F(UpdateTest, WritesWhatItUpdatesInPlace) {
  AdamOptimizer optimizer(parameters_, 0.1);
  size_t updated = 0;  // of the parameters; the state is twice as much
  for (const Variable& parameter : parameters_) {
    updated += parameter.bytes();
  }
  for (int step = 0; step < 3; ++step) {
    makeGradients();
    const size_t made = bytesMade([&] {
      optimizer.step();
      read();
    });
    EXPECT_LE(made, step == 0 ? 2.05 * updated : 0.05 * updated) << step;
  }
}

}  // namespace
}  // namespace fl::test
