// A step only records: no optimizer, scaler, clipping or schedule reads a value on the host.
#include <gtest/gtest.h>

#include "fl/autograd/Functions.h"
#include "fl/tensor/tensor.h"
#include "tests/CountingBackend.h"
#include "tests/optim/AllOptimizers.h"

namespace fl::test {
namespace {

TEST(NothingIsRead, InAnyStep) {
  testing::CountingBackend backend(defaultTensorBackend());
  const BackendScope scope(backend);
  const LrSchedule schedule = linearWarmup(2, cosineAnnealing(0.1, 3));
  DynamicScaler scaler(1024, 4096, 2);
  for (const MakeOptimizer& make : allOptimizers()) {
    Variable w(full(Shape({3}), 0.5, dtype::f16), true);
    const auto optimizer = make({w});
    for (int step = 0; step < 5; ++step) {
      optimizer->setLr(schedule(step));
      optimizer->zeroGrad();
      scaler.scale(sum(w * w, {})).backward();
      const auto finite = scaler.unscale({w});
      clipGradNorm({w}, 0.1);
      optimizer->step();
      optimizer->stepIf(finite.tensor());
      scaler.update();
    }
    EXPECT_EQ(backend.reads, 0) << optimizer->prettyString();
  }
  Variable w(full(Shape({3}), 0.5), true);
  giveGradient(w);
  EXPECT_GT(clipGradNorm({w}, 1), 1.0);
  EXPECT_EQ(backend.reads, 1);
}

}  // namespace
}  // namespace fl::test
