// A training step records; only a value that the program asks for is read on the host.
#include <gtest/gtest.h>

#include "fl/fl.h"

namespace fl::test {
namespace {

// The tests' own backend, counting what is read.
class CountingBackend : public TensorBackend {
 public:
  std::string name() const override { return "counting"; }
  TensorBackendType backendType() const override { return inner->backendType(); }
  bool supportsDataType(const dtype& type) const override { return inner->supportsDataType(type); }
  TensorValue apply(ir::Op op, std::vector<TensorValue> operands, const ir::Attrs& attrs,
                    const ir::ValueType& type) override {
    return inner->apply(op, std::move(operands), attrs, type);
  }
  bool supportsLibrary(ir::Op op, const std::vector<ir::ValueType>& operands,
                       const ir::Attrs& attrs, const ir::ValueType& type) const override {
    return inner->supportsLibrary(op, operands, attrs, type);
  }
  TensorValue fromNumber(const Number& number) override { return inner->fromNumber(number); }
  TensorValue fromHost(const void* data, const ir::ValueType& type) override {
    return inner->fromHost(data, type);
  }
  void toHost(const TensorValue& value, void* data) override {
    ++reads;
    inner->toHost(value, data);
  }
  void eval(const TensorValue& value) override { inner->eval(value); }
  void sync() override { inner->sync(); }

  static inline int reads = 0;
  static inline TensorBackend* inner = nullptr;
};

const BackendRegistration registration("counting", [](const std::string&) {
  return std::make_unique<CountingBackend>();
});

TEST(NothingIsRead, InATrainingStep) {
  CountingBackend::inner = &defaultTensorBackend();
  const BackendScope scope("counting");
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
  CountingBackend::reads = 0;
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
  EXPECT_EQ(CountingBackend::reads, 0);
  EXPECT_GT(losses.value()[0], 0);
  EXPECT_GE(errors.value(), 0);
  EXPECT_GT(CountingBackend::reads, 0);
}

}  // namespace
}  // namespace fl::test
