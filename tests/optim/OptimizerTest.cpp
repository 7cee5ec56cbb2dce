// Optimizers against the same rules in plain doubles, ten steps, and a model that learns.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "fl/autograd/Functions.h"
#include "fl/nn/nn.h"
#include "fl/optim/optim.h"
#include "fl/tensor/Random.h"
#include "tests/ErrorOf.h"
#include "tests/optim/AllOptimizers.h"

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
  for (const MakeOptimizer& make : allOptimizers()) {
    Variable with(Tensor::fromVector(kStart), true);
    Variable without(Tensor::fromVector(kStart), true);
    const auto optimizer = make({without, with});
    loss(with).backward();
    optimizer->step();
    EXPECT_EQ(valuesOf(without.tensor()), kStart) << optimizer->prettyString();
    EXPECT_NE(valuesOf(with.tensor()), kStart) << optimizer->prettyString();
    optimizer->zeroGrad();
    EXPECT_FALSE(with.isGradAvailable());
  }
}

TEST(Optimizers, AStepAfterOneThatThrewIsAsAnyOther) {
  for (const MakeOptimizer& make : allOptimizers()) {
    const auto twoSteps = [&](bool isFirstThrown) {
      Variable w(Tensor::fromVector(kStart), true), other(Tensor::fromVector(kStart), true);
      const auto optimizer = make({w, other});
      for (const bool throws : {isFirstThrown, false}) {
        optimizer->zeroGrad();
        (loss(w) + loss(other)).backward();
        if (throws) {
          other.tensor() = full({2}, 1.0, dtype::f64);  // which its gradient does not fit
          EXPECT_THROW(optimizer->step(), std::invalid_argument) << optimizer->prettyString();
        } else {
          optimizer->step();
        }
        other.tensor() = Tensor::fromVector(kStart);
        optimizer->setLr(0.3);
      }
      return valuesOf(w.tensor());
    };
    EXPECT_EQ(twoSteps(true), twoSteps(false));
  }
}

// A step of 16-bit parameters is one in f32 that is rounded at its end.
TEST(Optimizers, NarrowParametersHaveWideState) {
  for (const MakeOptimizer& make : allOptimizers()) {
    for (const dtype type : {dtype::f16, dtype::bf16}) {
      const Tensor start = Tensor::fromVector(kStart).astype(type);
      Variable narrow(start, true), wide(start.astype(dtype::f32), true);
      const auto optimizer = make({narrow}), other = make({wide});
      SCOPED_TRACE(optimizer->prettyString());
      for (int step = 0; step < 4; ++step) {
        // Its square would be 0 in f16.
        const Tensor grad = Tensor::fromVector(std::vector<float>{1e-4f, -3e-4f, 1}).astype(type);
        narrow.zeroGrad();
        wide.zeroGrad();
        narrow.addGrad(Variable(grad, false));
        wide.addGrad(Variable(grad.astype(dtype::f32), false));
        optimizer->step();
        other->step();
        wide.tensor() = wide.tensor().astype(type).astype(dtype::f32);
        EXPECT_EQ(narrow.type(), type);
        EXPECT_EQ(narrow.tensor().astype(dtype::f32).toHostVector<float>(),
                  wide.tensor().toHostVector<float>());
      }
    }
  }
}

// Where the variance of RMSProp is 0 but for rounding.
TEST(RMSProp, AGradientThatStaysIsNoSquareRootOfLessThanZero) {
  Variable w(Tensor::fromVector(std::vector<float>{1, 1, 1}), true);
  RMSPropOptimizer optimizer({w}, 1e-6, 0.5, 1e-3, 0, true);
  for (int step = 0; step < 60; ++step) {
    w.zeroGrad();
    w.addGrad(Variable(Tensor::fromVector(std::vector<float>{0.1f, 0.3f, 0.7f}), false));
    optimizer.step();
  }
  EXPECT_FALSE(isInvalidArray(w.tensor()));
}

// A schedule that begins at 0 leaves the velocity alone.
TEST(NAG, ALearningRateOfZeroIsNoDivisor) {
  Variable w(Tensor::fromVector(kStart), true);
  NAGOptimizer optimizer({w}, 0, 0.9);
  for (const double rate : {0.0, 0.1}) {
    EXPECT_EQ(valuesOf(w.tensor()), kStart);
    optimizer.setLr(rate);
    giveGradient(w);
    optimizer.step();
  }
  EXPECT_NEAR(valuesOf(w.tensor())[0], 1 - 0.1 * (4 + 0.9 * (0.9 * 4 + 4)), 1e-12);
}

TEST(NAG, Misuse) {
  const std::vector<Variable> none;
  EXPECT_EQ(errorOf<std::runtime_error>([&] {
              NAGOptimizer(none, 0.1, 0);
            }).find("NAGOptimizer: the momentum must be greater than 0, not 0"),
            0u);
}

// A tensor read before a step keeps its values.
TEST(Optimizers, StepWhatIsListedTwiceTwice) {
  Variable w(full(Shape({2}), 1.0, dtype::f64), true);
  w.addGrad(Variable(Tensor::fromVector(std::vector<double>{0.5, 0.25}), false));
  SGDOptimizer({w, w}, 1).step();
  EXPECT_EQ(valuesOf(w.tensor()), (std::vector<double>{0, 0.5}));
}

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
  EXPECT_EQ(AdamOptimizer(none, 1, 0.9, 0.99, 1e-8, 0.5).prettyString(), "Adam (weight decay=0.5)");
  EXPECT_EQ(AdamWOptimizer(none, 1).prettyString(), "AdamW (weight decay=0.01)");
  EXPECT_EQ(AMSgradOptimizer(none, 1).prettyString(), "AMSgrad from ");
  EXPECT_EQ(AMSgradOptimizer(none, 1, 0.9, 0.99, 1e-8, 0.5).prettyString(),
            "AMSgrad from  (weight decay=0.5)");
  EXPECT_EQ(NovogradOptimizer(none, 1).prettyString(), "Novograd");
  EXPECT_EQ(LionOptimizer(none, 1, 0.9, 0.99, 0.5).prettyString(), "Lion (weight decay=0.5)");
  EXPECT_EQ(RMSPropOptimizer(none, 1).prettyString(), "RMSProp");
  EXPECT_EQ(RMSPropOptimizer(none, 1, 0.9, 1e-8, 0.5, true).prettyString(),
            "RMSProp (weight decay=0.5) (use first moment)");
  EXPECT_EQ(AdadeltaOptimizer(none).prettyString(), "Adadelta (rho=0.9) (epsilon=1e-08)");
  EXPECT_EQ(AdadeltaOptimizer(none, 1, 0.9, 0, 0.5).prettyString(),
            "Adadelta (weight decay=0.5) (rho=0.9)");
  EXPECT_EQ(AdagradOptimizer(none, 1, 1e-8, 0.5).prettyString(), "Adagrad (epsilon=1e-08)");
  NAGOptimizer nag(none, 1, 0.99, 0.5);
  nag.setLr(2);
  EXPECT_EQ(nag.prettyString(),
            "NAG (lr=2 ); (previous lr=1); (weight decay=0.5); (Nesterov momentum=0.99)");
}

// As two modules list one that they share.
TEST(ClipGradNorm, ASharedParameterCountsOnce) {
  Variable w(full(Shape({2}), 1.0, dtype::f64), true);
  w.addGrad(Variable(Tensor::fromVector(std::vector<double>{3, 4}), false));
  DynamicScaler scaler(8);
  scaler.unscale({w, w});
  EXPECT_EQ(valuesOf(w.grad().tensor()), (std::vector<double>{0.375, 0.5}));
  EXPECT_EQ(clipGradNorm({w, Variable(w)}, 10), 0.625);
  EXPECT_EQ(valuesOf(w.grad().tensor()), (std::vector<double>{0.375, 0.5}));
}

TEST(ClipGradNorm, NarrowGradientsAndHandles) {
  Variable w(full(Shape({300}), 0.0, dtype::f16), true);
  w.addGrad(Variable(full(Shape({300}), 1000.0, dtype::f16), false));
  const Variable before = w.grad();
  // The squares alone are beyond f16.
  const double norm = clipGradNorm({w}, std::sqrt(300) / 2);
  EXPECT_NEAR(norm, 1000 * std::sqrt(300), 1e-2);
  EXPECT_EQ(w.grad().type(), dtype::f16);
  EXPECT_EQ(w.grad().tensor().astype(dtype::f32).scalar<float>(), 0.5f);
  EXPECT_EQ(before.tensor().astype(dtype::f32).scalar<float>(), 1000);
  EXPECT_EQ(clipGradNorm({}, 1), 0.0);
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
