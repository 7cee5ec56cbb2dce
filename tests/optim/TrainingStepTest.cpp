// What a step of training is to the compiler, for models of every kind: one plan if the loss is
// read after the update, two if it is read before the gradients, and the same ones in every step,
// whatever the step does with the gradients.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "fl/autograd/Functions.h"
#include "fl/contrib/contrib.h"
#include "fl/fl.h"
#include "tests/Values.h"
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
  model->add(RNN(6, kWidth, 2, RnnMode::LSTM, /*bidirectional=*/false, /*drop_prob=*/0.1));
  model->add(Linear(kWidth, kClasses));
  model->add(LogSoftmax());
  return model;
}

std::shared_ptr<Sequential> makeAttending() {
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

// One layer, for sequences without padding.
class UnpaddedTransformer : public Sequential {
 public:
  UnpaddedTransformer() = default;
  FL_BASIC_CONTAINER_CLONING(UnpaddedTransformer)
  std::vector<Variable> forward(const std::vector<Variable>& inputs) override {
    return modules()[0]->forward({inputs[0], Variable()});
  }
};

// Causal, with relative positions and both places of the norms.
std::shared_ptr<Sequential> makeTransformer() {
  auto model = std::make_shared<Sequential>();
  model->add(Embedding(kWidth, kVocabulary));
  for (const bool preLN : {false, true}) {
    UnpaddedTransformer layer;
    layer.add(Transformer(kWidth, kWidth / 2, 2 * kWidth, 2, kTime, /*pDropout=*/0.1,
                          /*pLayerdrop=*/0.1, /*useMask=*/true, preLN));
    model->add(std::move(layer));
  }
  model->add(Linear(kWidth, kClasses));
  model->add(LogSoftmax());
  return model;
}

Tensor makeText() { return integers({kTime, kBatch}, kVocabulary); }

const Task kTasks[] = {
    {"perceptron", makePerceptron, [] { return rand({12, kBatch}); }, {kBatch}},
    {"convolutional", makeConvolutional, [] { return rand({8, 8, 2, kBatch}); }, {kBatch}},
    {"recurrent", makeRecurrent, [] { return rand({6, kBatch, kTime}); }, {kBatch, kTime}},
    {"attending", makeAttending, makeText, {kTime, kBatch}},
    {"transformer", makeTransformer, makeText, {kTime, kBatch}},
};

// What becomes of the loss and the gradients.
struct Training {
  const char* name;
  OptimLevel level;
  dtype type;  // of 16 bits, unless the level is DEFAULT
  bool scales;
  bool clips;
};

const Training kTrainings[] = {
    {"plain", OptimLevel::DEFAULT, dtype::f16, false, false},
    {"clipped", OptimLevel::DEFAULT, dtype::f16, false, true},
    {"f16_scaled", OptimLevel::O1, dtype::f16, true, false},
    {"bf16_scaled_and_clipped", OptimLevel::O1, dtype::bf16, true, true},
};

// A model in training, in the mode that its training wants as long as it lives.
class Trained {
 public:
  Trained(const Task& task, const Training& training)
      : training_(training),
        model_(task.makeModel()),
        optimizer_(model_->params(), 1e-3),
        scaler_(1024) {
    OptimMode::get().setOptimLevel(training.level);
    OptimMode::get().setType(training.type);
    for (const Variable& parameter : model_->params()) {
      fl::eval(parameter.tensor());
    }
    sync();
  }
  ~Trained() {
    OptimMode::get().setOptimLevel(OptimLevel::DEFAULT);
    OptimMode::get().setType(dtype::f16);
  }

  AdamOptimizer& optimizer() { return optimizer_; }

  // The loss, read after the update.
  double step(const Variable& x, const Variable& y, bool readsBeforeBackward) {
    optimizer_.zeroGrad();
    Variable loss = criterion_((*model_)(x), y).astype(dtype::f32);
    if (readsBeforeBackward) {
      EXPECT_TRUE(std::isfinite(loss.scalar<float>()));
    }
    (training_.scales ? scaler_.scale(loss) : loss).backward();
    if (training_.scales) {
      const auto finite = scaler_.unscale(model_->params());
      clip();
      optimizer_.stepIf(finite.tensor());
      scaler_.update();
    } else {
      clip();
      optimizer_.step();
    }
    return loss.scalar<float>();
  }

 private:
  void clip() {
    if (training_.clips) {
      clipGradNorm(model_->params(), 0.5);
    }
  }

  const Training training_;
  std::shared_ptr<Sequential> model_;
  AdamOptimizer optimizer_;
  DynamicScaler scaler_;
  CategoricalCrossEntropy criterion_;
};

class TrainingStepTest : public ::testing::TestWithParam<std::tuple<Task, Training>> {
 protected:
  void expectRealizes(bool readsBeforeBackward, uint64_t expected) {
    const auto& [task, training] = GetParam();
    Trained trained(task, training);
    for (int i = 0; i < 4; ++i) {
      const Variable x = input(task.makeInput());
      const Variable y = noGrad(integers(task.targets, kClasses));
      sync();
      const testing::Counts counts;
      EXPECT_TRUE(std::isfinite(trained.step(x, y, readsBeforeBackward)));
      sync();
      EXPECT_EQ(counts.realizes(), expected);
      if (i > 0) {
        EXPECT_EQ(counts.plansBuilt(), 0u) << "in step " << i;
        EXPECT_EQ(counts.kernelsCompiled(), 0u) << "in step " << i;
      }
      EXPECT_EQ(counts.fallbacks(), 0u);
    }
  }
};

template <typename Param>
std::string nameOf(const ::testing::TestParamInfo<Param>& test) {
  return std::string(std::get<0>(test.param).name) + "_" + std::get<1>(test.param).name;
}

INSTANTIATE_TEST_SUITE_P(Models, TrainingStepTest,
                         ::testing::Combine(::testing::ValuesIn(kTasks),
                                            ::testing::ValuesIn(kTrainings)),
                         [](const auto& test) { return nameOf(test); });

TEST_P(TrainingStepTest, IsOnePlanIfTheLossIsReadAfterIt) { expectRealizes(false, 1); }

TEST_P(TrainingStepTest, IsTwoPlansIfTheLossIsReadBeforeTheGradients) { expectRealizes(true, 2); }

TEST(TrainingSteps, BadDataBeforeTheStepLosesNothing) {
  Sequential model;
  model.add(Embedding(3, 4));
  AdamOptimizer optimizer(model.params(), 0.1);
  const auto lossOf = [&](int word) { return sum(model(noGrad(full({2}, word, dtype::s32))), {}); };
  sync();
  const std::vector<float> before = valuesOf(model.param(0).tensor());
  for (const int word : {7, 2}) {
    Variable loss = lossOf(word);
    try {
      loss.scalar<float>();
    } catch (const std::invalid_argument&) {
      EXPECT_EQ(word, 7);
      continue;
    }
    loss.backward();
    optimizer.step();
  }
  std::vector<float> expected = before;
  for (size_t i = 6; i < 9; ++i) {
    expected[i] -= 0.1f;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(valuesOf(model.param(0).tensor())[i], expected[i], 1e-5);
  }
}

// The learning rate, the corrections of Adam's moments and the count of steps are arguments.
TEST(TrainingSteps, AThousandWithAScheduleAreOnePlan) {
  constexpr int kSteps = 1000, kWarmup = 100;
  const LrSchedule schedule = linearWarmup(kWarmup, cosineAnnealing(1e-2, kSteps - kWarmup));
  // What no other test trains with: its plans are new.
  const Training training{"", OptimLevel::DEFAULT, dtype::f16, /*scales=*/true, /*clips=*/true};
  for (const Task& task : kTasks) {
    SCOPED_TRACE(task.name);
    Trained trained(task, training);
    const Variable x = input(task.makeInput());
    const Variable y = noGrad(integers(task.targets, kClasses));
    sync();
    std::vector<double> losses;
    const testing::Counts counts;
    for (int step = 0; step < kSteps; ++step) {
      trained.optimizer().setLr(schedule(step));
      losses.push_back(trained.step(x, y, /*readsBeforeBackward=*/false));
      if (step == 0) {
        EXPECT_GT(counts.kernelsCompiled(), 0u);
      }
    }
    EXPECT_EQ(counts.realizes(), static_cast<uint64_t>(kSteps));
    EXPECT_EQ(counts.plansBuilt(), 1u);
    EXPECT_EQ(counts.fallbacks(), 0u);
    EXPECT_LT(losses.back(), losses.front() / 5);
  }
}

}  // namespace
}  // namespace fl::test
