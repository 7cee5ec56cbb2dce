// Optimizers against the same rules in plain doubles, ten steps, and a model that learns.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "fl/autograd/Functions.h"
#include "fl/nn/nn.h"
#include "fl/optim/optim.h"
#include "fl/tensor/Random.h"

namespace fl::test {
namespace {

const std::vector<double> kStart = {1.0, -2.0, 0.5};
const std::vector<double> kCurvature = {3.0, 0.5, 1.0};

std::vector<double> valuesOf(const Tensor& tensor) { return tensor.toHostVector<double>(); }

// sum(curvature w^2 / 2 + w): its gradient is curvature w + 1.
Variable loss(const Variable& w) {
  const Variable curvature(Tensor::fromVector(kCurvature), false);
  return sum(curvature * w * w * 0.5 + w, {});
}

std::vector<double> gradientOf(const std::vector<double>& w) {
  std::vector<double> g(w.size());
  for (size_t i = 0; i < w.size(); ++i) {
    g[i] = kCurvature[i] * w[i] + 1;
  }
  return g;
}

// Ten steps of `optimizer` on `w`, each held against `reference`, which updates plain numbers.
void expectSteps(Variable& w, FirstOrderOptimizer& optimizer,
                 const std::function<void(std::vector<double>&, int step)>& reference) {
  std::vector<double> expected = kStart;
  for (int step = 1; step <= 10; ++step) {
    optimizer.zeroGrad();
    loss(w).backward();
    const std::vector<double> grad = valuesOf(w.grad().tensor());
    optimizer.step();
    reference(expected, step);
    const std::vector<double> actual = valuesOf(w.tensor());
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_NEAR(actual[i], expected[i], 1e-12) << "step " << step << ", element " << i;
    }
    EXPECT_EQ(valuesOf(w.grad().tensor()), grad);  // the gradient itself stays
  }
}

TEST(SGD, FollowsItsRule) {
  for (double momentum : {0.0, 0.9}) {
    for (double decay : {0.0, 0.1}) {
      for (bool nesterov : {false, true}) {
        SCOPED_TRACE(::testing::Message() << momentum << " " << decay << " " << nesterov);
        Variable w(Tensor::fromVector(kStart), true);
        SGDOptimizer optimizer({w}, 0.05, momentum, decay, nesterov);
        std::vector<double> velocity(kStart.size());
        expectSteps(w, optimizer, [&](std::vector<double>& x, int) {
          std::vector<double> g = gradientOf(x);
          for (size_t i = 0; i < x.size(); ++i) {
            g[i] += decay * x[i];
            if (momentum != 0) {
              velocity[i] = momentum * velocity[i] + g[i];
              g[i] = nesterov ? g[i] + momentum * velocity[i] : velocity[i];
            }
            x[i] -= 0.05 * g[i];
          }
        });
      }
    }
  }
}

TEST(Adam, FollowsItsRule) {
  for (double decay : {0.0, 0.1}) {
    SCOPED_TRACE(decay);
    Variable w(Tensor::fromVector(kStart), true);
    AdamOptimizer optimizer({w}, 0.05, 0.8, 0.95, 1e-6, decay);
    std::vector<double> m(kStart.size()), v(kStart.size());
    expectSteps(w, optimizer, [&](std::vector<double>& x, int step) {
      const std::vector<double> g = gradientOf(x);
      const double rate = 0.05 * std::sqrt(1 - std::pow(0.95, step)) / (1 - std::pow(0.8, step));
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] -= decay * 0.05 * x[i];
        m[i] = 0.8 * m[i] + 0.2 * g[i];
        v[i] = 0.95 * v[i] + 0.05 * g[i] * g[i];
        x[i] -= rate * m[i] / (std::sqrt(v[i]) + 1e-6);
      }
    });
  }
}

TEST(Optimizers, TheLearningRateChanges) {
  Variable w(Tensor::fromVector(kStart), true);
  SGDOptimizer optimizer({w}, 0.5);
  EXPECT_EQ(optimizer.getLr(), 0.5);
  std::vector<double> expected = kStart;
  for (double rate : {0.5, 0.25, 0.0}) {
    optimizer.setLr(rate);
    w.zeroGrad();
    loss(w).backward();
    optimizer.step();
    const std::vector<double> g = gradientOf(expected);
    for (size_t i = 0; i < expected.size(); ++i) {
      expected[i] -= rate * g[i];
    }
    EXPECT_EQ(valuesOf(w.tensor()), expected);
  }
}

TEST(Optimizers, ParametersWithoutGradientStay) {
  Variable with(Tensor::fromVector(kStart), true);
  Variable without(Tensor::fromVector(kStart), true);
  SGDOptimizer sgd({without, with}, 0.1, 0.9, 0.1);
  AdamOptimizer adam({without, with}, 0.1, 0.9, 0.999, 1e-8, 0.1);
  loss(with).backward();
  sgd.step();
  adam.step();
  EXPECT_EQ(valuesOf(without.tensor()), kStart);
  EXPECT_NE(valuesOf(with.tensor()), kStart);
  sgd.zeroGrad();
  EXPECT_FALSE(with.isGradAvailable());
}

// A tensor read before a step keeps its values.
TEST(Optimizers, EarlierReadsStay) {
  Variable w(Tensor::fromVector(kStart), true);
  const Tensor before = w.tensor();
  SGDOptimizer optimizer({w}, 0.1);
  loss(w).backward();
  optimizer.step();
  EXPECT_EQ(valuesOf(before), kStart);
}

TEST(Optimizers, PrettyStrings) {
  const std::vector<Variable> none;
  EXPECT_EQ(SGDOptimizer(none, 1).prettyString(), "SGD");
  EXPECT_EQ(SGDOptimizer(none, 1, 0.9, 0.5).prettyString(),
            "SGD (weight decay=0.5) (momentum=0.9)");
  EXPECT_EQ(SGDOptimizer(none, 1, 0.9, 0, true).prettyString(), "SGD (Nesterov momentum=0.9)");
  EXPECT_EQ(AdamOptimizer(none, 1).prettyString(), "Adam");
}

// Exclusive or needs the hidden layer.
TEST(Optimizers, AModelLearns) {
  setSeed(2);
  Sequential model;
  model.add(Linear(2, 8));
  model.add(Tanh());
  model.add(Linear(8, 1));
  model.add(Sigmoid());
  AdamOptimizer optimizer(model.params(), 0.05);
  const Variable x =
      input(Tensor::fromVector(Shape({2, 4}), std::vector<float>{0, 0, 0, 1, 1, 0, 1, 1}));
  const Variable y = input(Tensor::fromVector(Shape({1, 4}), std::vector<float>{0, 1, 1, 0}));
  float last = 0;
  for (int step = 0; step < 300; ++step) {
    Variable error = MeanSquaredError()(model(x), y);
    optimizer.zeroGrad();
    error.backward();
    optimizer.step();
    last = error.scalar<float>();
  }
  EXPECT_LT(last, 0.01);
}

}  // namespace
}  // namespace fl::test
