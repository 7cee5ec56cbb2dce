// What a step of training is to the compiler, for models of every kind: one plan if the loss is
// read after the update, two if it is read before the gradients, and the same ones in every step.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "fl/autograd/Functions.h"
#include "fl/fl.h"
#include "tests/lazy/Counts.h"

namespace fl::test {
namespace {

constexpr int kClasses = 5;
constexpr Dim kTime = 7, kBatch = 4, kVocabulary = 11, kWidth = 16;

struct Task {
  const char* name;
  std::function<std::shared_ptr<Sequential>()> makeModel;
  std::function<Tensor()> makeInput;
  Shape targets;
};

Tensor integers(const Shape& shape, int bound) {
  return (rand(shape) * (bound - 0.001)).astype(dtype::s32);
}

std::shared_ptr<Sequential> makePerceptron() {
  auto model = std::make_shared<Sequential>();
  model->add(Linear(12, 24));
  model->add(ReLU());
  model->add(Dropout(0.25));
  model->add(Linear(24, kClasses));
  model->add(LogSoftmax());
  return model;
}

std::shared_ptr<Sequential> makeConvolutional() {
  auto model = std::make_shared<Sequential>();
  model->add(Conv2D(2, 4, 3, 3, 1, 1, PaddingMode::SAME, PaddingMode::SAME));
  model->add(BatchNorm(2, 4));
  model->add(ReLU());
  model->add(Pool2D(2, 2, 2, 2));
  model->add(View({4 * 4 * 4, -1}));
  model->add(Linear(4 * 4 * 4, kClasses));
  model->add(LogSoftmax());
  return model;
}

std::shared_ptr<Sequential> makeRecurrent() {
  auto model = std::make_shared<Sequential>();
  model->add(RNN(6, kWidth, 2, RnnMode::LSTM));
  model->add(Linear(kWidth, kClasses));
  model->add(LogSoftmax());
  return model;
}

std::shared_ptr<Sequential> makeTransformer() {
  auto model = std::make_shared<Sequential>();
  model->add(Embedding(kWidth, kVocabulary));
  model->add(MultiheadAttention(kWidth, 2));
  model->add(LayerNorm(std::vector<int>{0}));
  model->add(Linear(kWidth, 2 * kWidth));
  model->add(GELU());
  model->add(Linear(2 * kWidth, kClasses));
  model->add(LogSoftmax());
  return model;
}

const Task kTasks[] = {
    {"perceptron", makePerceptron, [] { return rand({12, kBatch}); }, {kBatch}},
    {"convolutional", makeConvolutional, [] { return rand({8, 8, 2, kBatch}); }, {kBatch}},
    {"recurrent", makeRecurrent, [] { return rand({6, kBatch, kTime}); }, {kBatch, kTime}},
    {"transformer",
     makeTransformer,
     [] { return integers({kTime, kBatch}, kVocabulary); },
     {kTime, kBatch}},
};

class TrainingStepTest : public ::testing::TestWithParam<Task> {
 protected:
  void expectRealizes(bool readsBeforeBackward, uint64_t expected) {
    const auto model = GetParam().makeModel();
    AdamOptimizer optimizer(model->params(), 1e-3);
    CategoricalCrossEntropy criterion;
    double first = 0, last = 0;
    const auto step = [&] {
      const Variable x = input(GetParam().makeInput());
      const Variable y = noGrad(integers(GetParam().targets, kClasses));
      sync();
      const testing::Counts counts;
      optimizer.zeroGrad();
      Variable loss = criterion((*model)(x), y);
      if (readsBeforeBackward) {
        last = loss.scalar<float>();
      }
      loss.backward();
      optimizer.step();
      last = loss.scalar<float>();
      sync();
      EXPECT_EQ(counts.realizes(), expected);
      EXPECT_EQ(counts.fallbacks(), 0u);
    };
    step();
    first = last;
    EXPECT_TRUE(std::isfinite(first));
    const testing::Counts counts;
    for (int i = 0; i < 3; ++i) {
      step();
    }
    EXPECT_EQ(counts.plansBuilt(), 0u);
    EXPECT_EQ(counts.kernelsCompiled(), 0u);
  }
};

INSTANTIATE_TEST_SUITE_P(Models, TrainingStepTest, ::testing::ValuesIn(kTasks),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(TrainingStepTest, IsOnePlanIfTheLossIsReadAfterIt) { expectRealizes(false, 1); }

TEST_P(TrainingStepTest, IsTwoPlansIfTheLossIsReadBeforeTheGradients) { expectRealizes(true, 2); }

}  // namespace
}  // namespace fl::test
