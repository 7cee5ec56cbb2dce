// A training step records; only a value that the program asks for is read on the host.
#include <gtest/gtest.h>

#include "fl/fl.h"
#include "tests/CountingBackend.h"

namespace fl::test {
namespace {

TEST(NothingIsRead, InATrainingStep) {
  testing::CountingBackend backend(defaultTensorBackend());
  const BackendScope scope(backend);
  Sequential model;
  model.add(View({8, 8, 1, -1}));
  model.add(Conv2D(1, 4, 3, 3, 1, 1, PaddingMode::SAME, PaddingMode::SAME));
  model.add(ReLU());
  model.add(Pool2D(2, 2, 2, 2));
  model.add(View({64, -1}));
  model.add(Linear(64, 10));
  model.add(Dropout(0.5));
  model.add(LogSoftmax());
  SGDOptimizer sgd(model.params(), 0.1, 0.9, 0.01, true);
  AdamOptimizer adam(model.params(), 0.01);

  const Tensor images = rand({8, 8, 1, 12});
  const Tensor labels = (rand({12}) * 9.0).astype(dtype::s32);
  const BatchDataset dataset(std::make_shared<TensorDataset>(std::vector<Tensor>{images, labels}),
                             4);
  AverageValueMeter losses;
  FrameErrorMeter errors;
  backend.reads = 0;
  for (auto& example : dataset) {
    Variable output = model(noGrad(example[0]));
    Variable loss = categoricalCrossEntropy(output, noGrad(example[1]));
    Tensor values, classes;
    max(values, classes, output.tensor(), 0);
    errors.add(classes, example[1]);
    losses.add(loss.tensor());
    loss.backward();
    sgd.step();
    adam.step();
    sgd.zeroGrad();
  }
  EXPECT_EQ(backend.reads, 0);
  EXPECT_GT(losses.value()[0], 0);
  EXPECT_GE(errors.value(), 0);
  EXPECT_GT(backend.reads, 0);
}

}  // namespace
}  // namespace fl::test
