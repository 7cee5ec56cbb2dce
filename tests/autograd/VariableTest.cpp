// The handle, the tape, and how backward() runs over it.
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Utils.h"
#include "fl/autograd/Variable.h"
#include "tests/SmallStack.h"
#include "tests/autograd/GradientCheck.h"

namespace fl::test {
namespace {

Variable leaf(std::vector<double> values) {
  return Variable(Tensor::fromVector(std::move(values)), true);
}

std::vector<double> gradOf(const Variable& variable) { return valuesOf(variable.grad().tensor()); }

TEST(Variable, Metadata) {
  const Variable empty;
  EXPECT_TRUE(empty.isEmpty());
  EXPECT_EQ(empty.type(), dtype::f32);
  EXPECT_FALSE(empty.isCalcGrad());

  const Variable x(full(Shape({2, 3}), 1.5, dtype::f64), true);
  EXPECT_EQ(x.shape(), Shape({2, 3}));
  EXPECT_EQ(x.ndim(), 2u);
  EXPECT_EQ(x.dim(1), 3);
  EXPECT_EQ(x.elements(), 6);
  EXPECT_EQ(x.bytes(), 48u);
  EXPECT_EQ(x.type(), dtype::f64);
  EXPECT_TRUE(x.isCalcGrad());
  EXPECT_TRUE(x.isContiguous());
  EXPECT_EQ(x.scalar<double>(), 1.5);
  double values[6];
  x.host(values);
  EXPECT_EQ(values[5], 1.5);
  EXPECT_THROW(x.dim(2), std::invalid_argument);
}

TEST(Variable, HandlesShareCopiesDoNot) {
  Variable x = leaf({1, 2});
  Variable handle = x;
  Variable copy = x.copy();
  x.tensor() += 1;
  x.addGrad(Variable(full(Shape({2}), 1.0, dtype::f64), false));
  EXPECT_EQ(valuesOf(handle.tensor()), (std::vector<double>{2, 3}));
  EXPECT_TRUE(handle.isGradAvailable());
  EXPECT_EQ(valuesOf(copy.tensor()), (std::vector<double>{1, 2}));
  EXPECT_TRUE(copy.isCalcGrad());
  EXPECT_FALSE(copy.isGradAvailable());
  EXPECT_TRUE(allClose(x, handle));
  EXPECT_FALSE(allClose(x, copy));
}

TEST(Variable, CalcGradComesFromTheInputs) {
  const Variable x = leaf({1});
  const Variable fixed(Tensor::fromVector(std::vector<double>{2}), false);
  EXPECT_TRUE((x * fixed).isCalcGrad());
  EXPECT_FALSE((fixed * fixed).isCalcGrad());
  int calls = 0;
  Variable result(fixed.tensor(), {fixed},
                  [&](std::vector<Variable>&, const Variable&) { ++calls; });
  EXPECT_FALSE(result.isCalcGrad());
  result.backward();  // nothing wants a gradient: does nothing
  EXPECT_EQ(calls, 0);
}

TEST(Variable, GradErrorsSayWhy) {
  const Variable fixed(Tensor::fromVector(std::vector<double>{2}), false);
  EXPECT_NE(errorOf<std::logic_error>([&] { fixed.grad(); }).find("calcGrad is false"),
            std::string::npos);
  EXPECT_NE(errorOf<std::logic_error>([&] { leaf({1}).grad(); }).find("is not available"),
            std::string::npos);
}

TEST(Variable, AddGradChecksShapeAndType) {
  Variable x = leaf({1, 2});
  const auto words = [&](const Tensor& grad) {
    return errorOf([&] { x.addGrad(Variable(grad, false)); });
  };
  EXPECT_NE(words(full(Shape({2}), 1.0, dtype::f32))
                .find("addGrad: a gradient of type f32[2] for a Variable of type f64[2]"),
            std::string::npos);
  EXPECT_NE(words(full(Shape({2, 1}), 1.0, dtype::f64)).find("f64[2,1]"), std::string::npos);
  Variable fixed(Tensor::fromVector(std::vector<double>{2}), false);
  fixed.addGrad(x);  // wants none: ignored
}

// A gradient that was handed out stays what it was, whoever else got it and whatever comes later.
TEST(Variable, GradientsAreNeverChangedInPlace) {
  Variable x = leaf({1, 2});
  Variable y = leaf({3, 4});
  const Variable grad(full(Shape({2}), 5.0, dtype::f64), false);
  x.addGrad(grad);
  y.addGrad(grad);
  Variable early = x.grad();
  x.addGrad(grad);
  EXPECT_EQ(gradOf(x), (std::vector<double>{10, 10}));
  EXPECT_EQ(gradOf(y), (std::vector<double>{5, 5}));
  EXPECT_EQ(valuesOf(early.tensor()), (std::vector<double>{5, 5}));
  x.grad().tensor() *= 2;
  EXPECT_EQ(valuesOf(grad.tensor()), (std::vector<double>{5, 5}));

  // The same within a graph: both inputs of + receive one gradient, indexing adds into its own.
  Variable a = leaf({1, 2});
  Variable b = leaf({1, 2});
  Variable sum = a + b;
  (sum + a(range(0, 1))(0)).backward();
  EXPECT_EQ(gradOf(a), (std::vector<double>{3, 1}));
  EXPECT_EQ(gradOf(b), (std::vector<double>{1, 1}));
}

TEST(Variable, SharedParameterAccumulates) {
  Variable w = leaf({2, 3});
  const Variable x(Tensor::fromVector(std::vector<double>{5, 7}), false);
  Variable loss = sum(w * x, {}) + sum(w * w, {});
  loss.backward();
  EXPECT_EQ(gradOf(w), (std::vector<double>{9, 13}));
  sum(w, {}).backward();  // leaves accumulate over calls
  EXPECT_EQ(gradOf(w), (std::vector<double>{10, 14}));
  w.zeroGrad();
  EXPECT_FALSE(w.isGradAvailable());
}

TEST(Variable, DiamondsRunEachFunctionOnce) {
  int calls = 0;
  Variable x = leaf({1});
  Variable middle(x.tensor(), {x}, [&](std::vector<Variable>& inputs, const Variable& grad) {
    ++calls;
    inputs[0].addGrad(grad);
  });
  Variable top = middle;
  for (int i = 0; i < 20; ++i) {
    top = top + top;  // 2^20 paths
  }
  top.backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(gradOf(x), (std::vector<double>{1048576}));
}

TEST(Variable, SecondBackwardThrowsBeforeItComputes) {
  Variable x = leaf({2});
  Variable shared = x * x;
  Variable first = shared * 3.0;
  Variable second = shared + x;
  first.backward();
  EXPECT_EQ(gradOf(x), (std::vector<double>{12}));
  for (Variable* again : {&first, &second, &shared}) {
    EXPECT_NE(errorOf<std::logic_error>([&] { again->backward(); }).find("retainGraph = true"),
              std::string::npos);
  }
  EXPECT_EQ(gradOf(x), (std::vector<double>{12}));
}

TEST(Variable, RetainedGraphsRunAgain) {
  Variable x = leaf({2});
  Variable shared = x * x;
  Variable first = shared * 3.0;
  Variable second = shared + x;
  first.backward(/*retainGraph=*/true);
  first.backward(true);
  EXPECT_EQ(gradOf(x), (std::vector<double>{24}));
  EXPECT_EQ(gradOf(shared), (std::vector<double>{3}));  // of the latest call
  second.backward(true);
  EXPECT_EQ(gradOf(x), (std::vector<double>{29}));
  second.backward();
  EXPECT_EQ(gradOf(x), (std::vector<double>{34}));
}

TEST(Variable, BackwardAddsToWhatWasAddedBefore) {
  Variable x = leaf({2});
  Variable y = x * x;
  y.addGrad(Variable(full({1}, 0.5, x.type()), false));
  y.backward(/*retainGraph=*/true);
  EXPECT_EQ(gradOf(x), (std::vector<double>{6}));
  y.backward();
  EXPECT_EQ(gradOf(x), (std::vector<double>{10}));
}

TEST(Variable, BackwardReleasesWhatItRead) {
  const auto held = std::make_shared<int>(0);
  Variable x = leaf({1});
  Variable y(x.tensor(), {x}, [held](std::vector<Variable>& inputs, const Variable& grad) {
    inputs[0].addGrad(grad);
  });
  y.backward(true);
  EXPECT_EQ(held.use_count(), 2);
  y.backward();
  EXPECT_EQ(held.use_count(), 1);
  y.setCalcGrad(false);
  EXPECT_FALSE(y.isGradAvailable());
}

TEST(Variable, HooksSeeFinalGradients) {
  Variable x = leaf({1, 2});
  Variable y = x * 3.0;
  std::vector<std::string> order;
  x.registerGradHook([&](Variable& grad) {
    order.push_back("x");
    EXPECT_EQ(valuesOf(grad.tensor()), (std::vector<double>{5, 8}));
  });
  y.registerGradHook([&](Variable& grad) {
    order.push_back("y");
    EXPECT_EQ(valuesOf(grad.tensor()), (std::vector<double>{1, 2}));
  });
  // d/dx of (y * {1, 2} + 2 x) is 3 * {1, 2} + 2.
  Variable loss =
      sum(y * Variable(Tensor::fromVector(std::vector<double>{1, 2}), false) + x * 2.0, {});
  loss.backward();
  EXPECT_EQ(order, (std::vector<std::string>{"y", "x"}));
  x.clearGradHook();
  (x * 1.0).backward();
  EXPECT_EQ(order.size(), 2u);
}

// What a hook does to the gradient is what an optimizer sees.
TEST(Variable, HooksMayReplaceTheGradient) {
  Variable x = leaf({1, 2});
  x.registerGradHook([](Variable& grad) { grad.tensor() *= 0.5; });
  (x * 4.0).backward();
  EXPECT_EQ(gradOf(x), (std::vector<double>{2, 2}));
}

// Gradients are those of the values at the time of the call.
TEST(Variable, UpdatesInPlaceBetweenForwardAndBackward) {
  Variable x = leaf({2, 3});
  Variable w = leaf({5, 7});
  Variable y = x * w;
  Variable z = exp(x);
  x.tensor() += 10;
  w.tensor() = Tensor::fromVector(std::vector<double>{0, 0});
  y.backward();
  EXPECT_EQ(gradOf(x), (std::vector<double>{5, 7}));
  EXPECT_EQ(gradOf(w), (std::vector<double>{2, 3}));
  x.zeroGrad();
  z.tensor() *= 0.0;
  z.backward();
  expectNear(gradOf(x), {std::exp(2), std::exp(3)}, 1e-14);
}

TEST(Variable, WithoutDataKeepsTheHistory) {
  Variable x(full(Shape({2, 2}), 3.0, dtype::f64), true);
  Variable edge = x.withoutData();
  EXPECT_EQ(edge.shape(), Shape({2, 2}));
  EXPECT_EQ(edge.type(), dtype::f64);
  EXPECT_EQ(edge.tensor().shape(), Shape({2, 2}));
  edge.addGrad(Variable(full(Shape({2, 2}), 1.0, dtype::f64), false));
  EXPECT_EQ(gradOf(x), (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(valuesOf(x.tensor()), (std::vector<double>{3, 3, 3, 3}));
}

TEST(Variable, AstypeCastsTheGradientBack) {
  Variable x(Tensor::fromVector(std::vector<float>{1, 2}), true);
  Variable y = x.astype(dtype::f64);
  EXPECT_EQ(y.type(), dtype::f64);
  (y * y).backward();
  EXPECT_EQ(x.grad().type(), dtype::f32);
  EXPECT_EQ(gradOf(x), (std::vector<double>{2, 4}));
}

TEST(Variable, SetCalcGradDropsTheHistory) {
  Variable x = leaf({1});
  Variable y = x * 2.0;
  y.setCalcGrad(false);
  y.setCalcGrad(true);  // a leaf now
  (y * 3.0).backward();
  EXPECT_EQ(gradOf(y), (std::vector<double>{3}));
  EXPECT_FALSE(x.isGradAvailable());
}

// A gradient keeps what it reads of its function's call: what is wanted later gets none.
TEST(Variable, GradientsAreThoseWantedAtTheCall) {
  using In = const Variable&;
  using Binary = std::function<Variable(In x, In y)>;
  const auto gradient = [](const Shape& shape, const Binary& function) {
    Variable x(reshape(Tensor::fromVector(std::vector<double>{2, 4}), shape), true);
    Variable y(reshape(Tensor::fromVector(std::vector<double>{5, 3}), shape), false);
    Variable result = function(x, y);
    y.setCalcGrad(true);
    result.backward();
    EXPECT_FALSE(y.isGradAvailable());
    return gradOf(x);
  };
  const auto vectors = [&](const Binary& function) { return gradient({2}, function); };
  EXPECT_EQ(vectors([](In x, In y) { return x * y; }), (std::vector<double>{5, 3}));
  EXPECT_EQ(vectors([](In x, In y) { return y * x; }), (std::vector<double>{5, 3}));
  EXPECT_EQ(vectors([](In x, In y) { return x / y; }), (std::vector<double>{1.0 / 5, 1.0 / 3}));
  EXPECT_EQ(vectors([](In x, In y) { return y / x; }), (std::vector<double>{-5.0 / 4, -3.0 / 16}));
  const auto ofWeight = [](In x, In y) { return linear(moddims(x, {2}), y); };
  EXPECT_EQ(gradient({1, 2}, ofWeight), (std::vector<double>{5, 3}));
  const auto ofInput = [](In x, In y) { return linear(y, transpose(x)); };
  EXPECT_EQ(gradient({1, 2}, ofInput), (std::vector<double>{8, 8}));
  const auto convolved = [](In x, In y) { return conv2d(x, y); };
  EXPECT_EQ(gradient({1, 2, 1, 1}, convolved), (std::vector<double>{5, 3}));
  const auto filtered = [](In x, In y) { return conv2d(y, x); };
  EXPECT_EQ(gradient({1, 2, 1, 1}, filtered), (std::vector<double>{5, 3}));
}

TEST(Variable, AForgottenGradientIsReported) {
  Variable x = leaf({1});
  Variable y = x * 2.0;
  Variable z(y.tensor(), {y}, [](std::vector<Variable>&, const Variable&) {});
  EXPECT_NE(errorOf<std::logic_error>([&] { z.backward(); }).find("no gradient was propagated"),
            std::string::npos);
}

TEST(Variable, ABackwardThatThrewLeavesNothingBehind) {
  Variable x = leaf({1, 2});
  const Variable twice = x * 2.0;
  int calls = 0;
  const auto throwsAtFirst = [&](std::vector<Variable>& inputs, const Variable& grad) {
    if (calls++ == 0) throw std::runtime_error("the first call");
    inputs[0].addGrad(grad);
  };
  // Two ways to `twice`: one gives it a gradient, the other one throws.
  Variable result = sum(Variable(twice.tensor(), {twice}, throwsAtFirst) + twice, {});
  EXPECT_THROW(result.backward(/*retainGraph=*/true), std::runtime_error);
  x.zeroGrad();
  result.backward();
  EXPECT_EQ(gradOf(x), (std::vector<double>{4, 4}));
}

TEST(Variable, BackwardTakesAGradient) {
  Variable x = leaf({1, 2});
  Variable y = x * x;
  y.backward(Variable(Tensor::fromVector(std::vector<double>{10, 100}), false));
  EXPECT_EQ(gradOf(x), (std::vector<double>{20, 400}));
}

// The gradients that there were, and the history, are there still.
TEST(Variable, BackwardRefusesAGradientBeforeItChangesAny) {
  Variable x = leaf({1, 2});
  Variable y = x * x;
  Variable z = y * 3.0;
  z.backward(/*retainGraph=*/true);
  const auto words = [&](const Shape& shape, dtype type) {
    return errorOf([&] { z.backward(Variable(full(shape, 1.0, type), false)); });
  };
  const std::string is = "backward: a gradient of type ", of = " for a Variable of type f64[2]";
  EXPECT_EQ(words(Shape({3}), dtype::f64).find(is + "f64[3]" + of), 0u);
  EXPECT_EQ(words(Shape({2}), dtype::f32).find(is + "f32[2]" + of), 0u);
  EXPECT_EQ(gradOf(z), (std::vector<double>{1, 1}));
  EXPECT_EQ(gradOf(y), (std::vector<double>{3, 3}));
  EXPECT_EQ(gradOf(x), (std::vector<double>{6, 12}));
  z.backward();
  EXPECT_EQ(gradOf(x), (std::vector<double>{12, 24}));
}

// Frozen for all handles and for copies, whatever asks for a gradient.
TEST(Variable, FrozenVariablesAreConstants) {
  Variable x = leaf({1, 2}), other = leaf({3, 4});
  Variable handle = x;
  (x * other).backward();
  x.freeze();
  EXPECT_FALSE(handle.isGradAvailable());
  handle.setCalcGrad(true);
  Variable copy = x.copy();
  copy.setCalcGrad(true);
  EXPECT_FALSE(x.isCalcGrad());
  EXPECT_FALSE(copy.isCalcGrad());
  EXPECT_FALSE((x * x).isCalcGrad());
  other.zeroGrad();
  (x * other).backward();
  EXPECT_EQ(gradOf(other), (std::vector<double>{1, 2}));
}

// The gradients of all steps are kept, with those of the Variables in between, and read after the
// last one: no plan has placed one over another that somebody holds.
TEST(Variable, GradientsThatAreReadLateAreThoseOfTheirStep) {
  constexpr int kSteps = 6;
  const std::vector<double> x = {0.5, -1, 0.25, 2, 1, -0.5};  // (3, 2)
  const Variable input(Tensor::fromVector(Shape({3, 2}), x), false);
  Variable w(full(Shape({2, 3}), 0.25, dtype::f64), true);
  std::vector<Tensor> gradients, between;
  for (int step = 0; step < kSteps; ++step) {
    Variable y = matmul(w, input);
    Variable t = tanh(y);
    Variable loss = sum(t * t, {});
    loss.backward();
    gradients.push_back(w.grad().tensor());
    between.push_back(y.grad().tensor());
    w.tensor() -= 0.1 * w.grad().tensor();
    w.zeroGrad();
    w.eval();
  }
  std::vector<double> weights(6, 0.25);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> ofY(4), ofW(6, 0);
    for (int n = 0; n < 2; ++n) {
      for (int i = 0; i < 2; ++i) {
        double y = 0;
        for (int k = 0; k < 3; ++k) {
          y += weights[i + 2 * k] * x[k + 3 * n];
        }
        ofY[i + 2 * n] = 2 * std::tanh(y) * (1 - std::tanh(y) * std::tanh(y));
        for (int k = 0; k < 3; ++k) {
          ofW[i + 2 * k] += ofY[i + 2 * n] * x[k + 3 * n];
        }
      }
    }
    expectNear(valuesOf(gradients[step]), ofW, 1e-12);
    expectNear(valuesOf(between[step]), ofY, 1e-12);
    for (int i = 0; i < 6; ++i) {
      EXPECT_GT(std::abs(ofW[i]), 1e-6) << "a gradient of 0 would show nothing";
      weights[i] -= 0.1 * ofW[i];
    }
  }
}

TEST(Variable, ErrorsNameTheUsersLine) {
  const Variable x = leaf({1, 2});
  const std::string here = "tests/autograd/VariableTest.cpp:";
  const auto expectLine = [&](const std::string& message, int line) {
    EXPECT_NE(message.find(here + std::to_string(line)), std::string::npos) << message;
  };
  const auto index = [&] { x(7); };
  expectLine(errorOf(index), __LINE__ - 1);
  const auto grad = [&] { x.grad(); };
  expectLine(errorOf<std::logic_error>(grad), __LINE__ - 1);
  const auto function = [&] { logSoftmax(x, 3); };
  expectLine(errorOf(function), __LINE__ - 1);
  const auto scalar = [&] { x.scalar<float>(); };
  expectLine(errorOf(scalar), __LINE__ - 1);
  const auto host = [&] { std::free(x.host<float>()); };
  expectLine(errorOf(host), __LINE__ - 1);
  float values[2];
  const auto copy = [&] { x.host(values); };
  expectLine(errorOf(copy), __LINE__ - 1);
}

// What a function of the user's own takes from ours.
Variable sumOfEqualTypes(const Variable& a, const Variable& b, const Variable& c) {
  FL_VARIABLE_DTYPES_MATCH_CHECK(a, b, c);
  return a + b + c;
}

TEST(Variable, FunctionsOfTheUser) {
  const Variable x = leaf({1, 2}), y = leaf({3, 4}).astype(dtype::f32);
  const Variable fixed(x.tensor(), false);
  expectNear(valuesOf(sumOfEqualTypes(x, x, x).tensor()), {3, 6}, 0);
  EXPECT_NE(errorOf([&] {
              sumOfEqualTypes(x, x, y);
            }).find("sumOfEqualTypes: Variables of different types, f64[2] and f32[2]"),
            std::string::npos);
  EXPECT_TRUE(fl::detail::areVariableTypesEqual(x, fixed));
  EXPECT_FALSE(fl::detail::areVariableTypesEqual(x, y));
  EXPECT_TRUE(fl::detail::areVariableTypesEqual(x, x, fixed));
  EXPECT_FALSE(fl::detail::areVariableTypesEqual(x, x, y));
  EXPECT_NE(fl::detail::createAutogradPayload(x), nullptr);
  EXPECT_NE(fl::detail::createAutogradPayload(fixed, x), nullptr);
  EXPECT_EQ(fl::detail::createAutogradPayload(fixed, fixed), nullptr);
}

// ---- Depth ----

using fl::testing::onSmallStack;

constexpr int kDepth = 1000000;

Variable longTape(const Variable& start, int* calls) {
  Variable last = start;
  for (int i = 0; i < kDepth; ++i) {
    last = Variable(start.tensor(), {last},
                    [calls](std::vector<Variable>& inputs, const Variable& grad) {
                      ++*calls;
                      inputs[0].addGrad(grad);
                    });
  }
  return last;
}

TEST(Depth, AMillionVariablesRunBackward) {
  onSmallStack([] {
    int calls = 0;
    Variable x = leaf({2});
    Variable last = longTape(x, &calls);
    last.backward();
    EXPECT_EQ(calls, kDepth);
    EXPECT_EQ(gradOf(x), (std::vector<double>{1}));
  });
}

TEST(Depth, AMillionVariablesAreDestroyed) {
  onSmallStack([] {
    int calls = 0;
    Variable x = leaf({2});
    {
      const Variable unused = longTape(x, &calls);
      Variable retained = longTape(x, &calls);
      retained.backward(/*retainGraph=*/true);
    }
    EXPECT_EQ(calls, kDepth);
    Variable cut = longTape(x, &calls);
    cut.setCalcGrad(false);
  });
}

// Histories held by the gradient functions themselves.
TEST(Depth, NestedClosuresAreDestroyed) {
  onSmallStack([] {
    Variable last = leaf({2});
    for (int i = 0; i < 100000; ++i) {
      const Variable input = last;
      last = Variable(input.tensor(), {input},
                      [input](std::vector<Variable>&, const Variable&) { input.isCalcGrad(); });
    }
  });
}

TEST(Depth, LongChainsOfOperators) {
  onSmallStack([] {
    Variable x = leaf({1});
    Variable y = x;
    for (int i = 0; i < 10000; ++i) {
      y = y + x;
    }
    y.backward();
    EXPECT_EQ(valuesOf(y.tensor()), (std::vector<double>{10001}));
    EXPECT_EQ(gradOf(x), (std::vector<double>{10001}));
  });
}

}  // namespace
}  // namespace fl::test
