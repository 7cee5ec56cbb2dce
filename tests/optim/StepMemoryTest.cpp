// Row E4. The memory of a step: that of the parameters, their gradients and the optimizer's state, and 5 %.
// What a step needs beyond those, which are there before it, is counted in bytes.
#include <gtest/gtest.h>

#include <functional>

#include "fl/autograd/Functions.h"
#include "fl/fl.h"
#include "tests/lazy/BufferLog.h"
#include "tests/optim/AllOptimizers.h"

namespace fl::test {
namespace {

struct Way {
  const char* name;
  std::function<void(FirstOrderOptimizer& optimizer, const std::vector<Variable>& parameters)> step;
  bool clips = false;
  bool unscales = false;
};

std::vector<Way> allWays() {
  return {
      {"step", [](auto& optimizer, const auto&) { optimizer.step(); }},
      {"stepIf", [](auto& optimizer, const auto&) { optimizer.stepIf(full({}, true, dtype::b8)); }},
      {"clipped",
       [](auto& optimizer, const auto& parameters) {
         clipGradNorm(parameters, 0.5);
         optimizer.step();
       },
       true},
      {"unscaled and clipped",
       [](auto& optimizer, const auto& parameters) {
         const auto finite = DynamicScaler(1024).unscale(parameters);
         clipGradNorm(parameters, 0.5);
         optimizer.stepIf(finite.tensor());
       },
       true, true},
  };
}

struct Bytes {
  explicit Bytes(const std::vector<Variable>& given) {
    for (const Variable& parameter : given) {
      parameters += parameter.bytes();
      gradients += parameter.grad().bytes();
      elements += static_cast<size_t>(parameter.elements());
    }
  }
  size_t parameters = 0, gradients = 0, elements = 0;
};

bool isNovograd(const FirstOrderOptimizer& optimizer) {
  return optimizer.prettyString().starts_with("Novograd");
}

// What a step on gradients that are there may take.
size_t allowed(const Bytes& bytes, const Way& way, const FirstOrderOptimizer& optimizer) {
  const size_t single = bytes.elements * sizeof(float);
  // Unscaled they are f32, whoever holds them: beside those that were scaled.
  return (bytes.parameters + bytes.gradients) / 20 +
         (way.unscales && bytes.gradients < single ? single : 0);
}

void expectInPlace(FirstOrderOptimizer& optimizer, const Way& way,
                   const std::vector<Variable>& parameters) {
  sync();
  const size_t most = allowed(Bytes(parameters), way, optimizer);
  const size_t growth = testing::peakGrowth([&] {
    way.step(optimizer, parameters);
    sync();
  });
  EXPECT_LE(growth, most) << optimizer.prettyString() << ", " << way.name;
}

template <typename Check>
void forEachWay(Check&& check) {
  for (const MakeOptimizer& make : allOptimizers()) {
    for (const Way& way : allWays()) {
      check(make, way);
    }
  }
}

std::vector<Variable> makeParameters(dtype type) {
  std::vector<Variable> parameters;
  for (const Shape& shape : {Shape({4000}), Shape({64, 60}), Shape({3, 40, 50}), Shape({4000}),
                             Shape({60, 64}), Shape({1500, 2})}) {
    parameters.emplace_back(rand(shape).astype(type), true);
    fl::eval(parameters.back().tensor());
  }
  sync();
  return parameters;
}

class StepMemory : public ::testing::TestWithParam<dtype> {};

INSTANTIATE_TEST_SUITE_P(Types, StepMemory, ::testing::Values(dtype::f32, dtype::f16, dtype::bf16),
                         [](const auto& test) { return dtypeToString(test.param); });

TEST_P(StepMemory, E4IsThatOfWhatIsUpdated) {
  forEachWay([](const MakeOptimizer& make, const Way& way) {
    const std::vector<Variable> parameters = makeParameters(GetParam());
    const auto optimizer = make(parameters);
    for (int step = 0; step < 3; ++step) {
      for (Variable parameter : parameters) {
        giveGradient(parameter);
        fl::eval(parameter.grad().tensor());
      }
      expectInPlace(*optimizer, way, parameters);
    }
  });
}

// What a convolution and a Linear have of their own is more than what they compute.
Sequential makeModel() {
  Sequential model;
  model.add(Conv2D(16, 64, 3, 3, 1, 1, PaddingMode::SAME, PaddingMode::SAME));
  model.add(ReLU());
  model.add(View({4 * 4 * 64, -1}));
  model.add(Linear(4 * 4 * 64, 64));
  model.add(Tanh());
  model.add(Linear(64, 5));
  return model;
}

class Trained {
 public:
  explicit Trained(const MakeOptimizer& make)
      : model_(makeModel()),
        optimizer_(make(model_.params())),
        x_(input(rand({4, 4, 16, 2}))),
        y_(input(rand({5, 2}))) {
    sync();
  }

  FirstOrderOptimizer& optimizer() { return *optimizer_; }
  std::vector<Variable> parameters() const { return model_.params(); }

  Variable computeGradients() {
    optimizer_->zeroGrad();
    Variable loss = MeanSquaredError()(model_(x_), y_);
    loss.backward();
    return loss;
  }

 private:
  Sequential model_;
  std::shared_ptr<FirstOrderOptimizer> optimizer_;
  const Variable x_, y_;
};

TEST(StepMemoryOfAModule, IsThatOfWhatIsUpdated) {
  forEachWay([](const MakeOptimizer& make, const Way& way) {
    Trained trained(make);
    for (int step = 0; step < 3; ++step) {
      trained.computeGradients();
      expectInPlace(trained.optimizer(), way, trained.parameters());
    }
  });
}

// A plan of all takes hardly more than one that computes the gradients alone.
TEST(StepMemoryOfAModule, IsThatOfTheGradientsInOnePlan) {
  forEachWay([](const MakeOptimizer& make, const Way& way) {
    Trained trained(make);
    if (way.clips || isNovograd(trained.optimizer())) {
      return;  // these keep gradients that become others beside them
    }
    for (int step = 0; step < 3; ++step) {
      trained.computeGradients();
      sync();
      const size_t gradients = testing::peakGrowth([&] {
        trained.computeGradients();
        sync();
      });
      const size_t growth = testing::peakGrowth([&] {
        const Variable loss = trained.computeGradients();
        way.step(trained.optimizer(), trained.parameters());
        loss.scalar<float>();
      });
      const Bytes bytes(trained.parameters());
      EXPECT_LE(growth, gradients + (bytes.parameters + bytes.gradients) / 20)
          << trained.optimizer().prettyString() << ", " << way.name << ", in step " << step;
    }
  });
}

}  // namespace
}  // namespace fl::test
