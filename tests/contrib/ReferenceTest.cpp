// Values and gradients of the modules against PyTorch's.
#include "fl/autograd/Functions.h"
#include "tests/contrib/Checks.h"
#include "tests/reference/References.h"

namespace fl::test {
namespace {

// Of f64: 2e-9, for sums in another order.
constexpr double kUlps = 1e7;
// Of f32.
constexpr double kTolerance = 1e-5;

Tensor named(const ReferenceCase& reference, const std::string& what) {
  return reference.input(reference.text("of") + "_" + what);
}

// In this dtype if it is one of floats.
Variable as(dtype type, const Variable& input) {
  const bool floats = isFloating(input.type());
  return Variable(floats ? input.tensor().astype(type) : input.tensor(), input.isCalcGrad());
}

// The elements of every result within kUlps of f64, or of f32 within kTolerance, where `floor`
// counts for smaller gradients.
void expectResult(ReferenceCase& reference, const std::string& name, const Tensor& actual,
                  double floor) {
  if (actual.type() == dtype::f64) {
    reference.expect(name, actual, kUlps);
  } else {
    reference.expectNear(name, actual.astype(dtype::f64), kTolerance, floor);
  }
}

// With the case's parameters in the module, whose inputs may hold x, which then wants a gradient.
// Returns the largest element of all gradients.
double expectAnswersIn(dtype type, ReferenceCase& reference, Module& module,
                       const std::vector<Variable>& given, double floor) {
  std::vector<Variable> inputs;
  for (const Variable& input : given) {
    inputs.push_back(as(type, input));
  }
  std::vector<Shape> shapes;
  for (int i = 0; i < module.numParamTensors(); ++i) {
    const Tensor value = named(reference, "p" + std::to_string(i));
    shapes.push_back(value.shape());
    module.setParams(param(reshape(value.astype(type), module.param(i).shape())), i);
  }
  Variable y = outputOf(module, inputs);
  EXPECT_EQ(y.type(), type);
  expectResult(reference, "y", y.tensor(), 0);
  y.backward(noGrad((named(reference, "weights") + 1.5).astype(type)));
  double largest = 0;
  const auto expectGradient = [&](const std::string& name, const Tensor& gradient) {
    EXPECT_EQ(gradient.type(), type) << name;
    expectResult(reference, name, gradient, floor);
    largest = std::max(largest, amax(absolute(gradient)).asScalar<double>());
  };
  for (int i = 0; i < module.numParamTensors(); ++i) {
    expectGradient("d" + std::to_string(i), reshape(module.param(i).grad().tensor(), shapes[i]));
  }
  for (const Variable& input : inputs) {
    if (input.isCalcGrad()) {
      expectGradient("dx", input.grad().tensor());
    }
  }
  return largest;
}

// In f32, terms of gradients are of one size whatever is left of their sums: what is smaller than a
// hundredth of the largest counts as that. PyTorch's own gradients in f32 need as much.
void expectAnswers(ReferenceCase& reference, Module& module, const std::vector<Variable>& inputs) {
  const double largest = expectAnswersIn(dtype::f64, reference, module, inputs, 0);
  expectAnswersIn(dtype::f32, reference, module, inputs, 1e-2 * largest);
}

Variable padMaskOf(const ReferenceCase& reference) {
  return reference.has("pad") ? noGrad(reference.tensor("pad")) : Variable();
}

void transformer(ReferenceCase& reference) {
  Transformer module(6, 2, 5, 3, reference.integer("context"), 0, 0, reference.integer("mask"),
                     reference.integer("pre"));
  std::vector<Variable> inputs = {param(named(reference, "x")), padMaskOf(reference)};
  if (reference.has("previous")) {
    inputs.insert(inputs.begin(), noGrad(reference.tensor("previous")));
  }
  expectAnswers(reference, module, inputs);
}

void conformer(ReferenceCase& reference) {
  Conformer module(4, 3, 5, 2, reference.integer("context"), reference.integer("kernel"), 0);
  expectAnswers(reference, module, {param(named(reference, "x")), padMaskOf(reference)});
}

void tds(ReferenceCase& reference) {
  TDSBlock module(2, reference.integer("kernel"), 3, 0, reference.integer("inner"),
                  reference.integer("right"), reference.integer("time"));
  expectAnswers(reference, module, {param(named(reference, "x"))});
}

void asymmetric(ReferenceCase& reference) {
  AsymmetricConv1D module(4, 6, 5, reference.integer("stride"), PaddingMode::SAME,
                          static_cast<float>(reference.number("future")),
                          reference.integer("dilation"), true, reference.integer("groups"));
  expectAnswers(reference, module, {param(named(reference, "x"))});
}

void adaptive(ReferenceCase& reference) {
  const int dim = static_cast<int>(named(reference, "p1").dim(0));
  AdaptiveEmbedding module(dim, reference.integers("cutoff"),
                           static_cast<float>(reference.integer("divisor")));
  expectAnswers(reference, module, {noGrad(named(reference, "words"))});
  const Tensor floats = named(reference, "words").astype(dtype::f32);
  EXPECT_TRUE(allClose(outputOf(module, {noGrad(floats)}).tensor(),
                       outputOf(module, {noGrad(named(reference, "words"))}).tensor(), 1e-12));
}

void positions(ReferenceCase& reference) {
  PositionEmbedding module(3, 6);
  expectAnswers(reference, module, {param(named(reference, "x"))});
}

void sinusoids(ReferenceCase& reference) {
  const Variable x = param(named(reference, "x"));
  SinusoidalPositionEmbedding module(static_cast<int>(x.dim(0)), 1.5);
  expectAnswers(reference, module, {x});
}

void residual(ReferenceCase& reference) {
  Residual module;
  module.add(Linear(4, 4));
  module.add(Tanh());
  module.add(Linear(4, 3));
  module.addShortcut(0, 3);
  module.addShortcut(1, 4, Linear(4, 3, false));
  module.addScale(3, 0.5);
  module.addScale(4, 0.25);
  expectAnswers(reference, module, {param(named(reference, "x"))});
}

TEST(ContribReference, PyTorch) {
  runReferences("contrib", {{"transformer", transformer},
                            {"conformer", conformer},
                            {"tds", tds},
                            {"asymmetric", asymmetric},
                            {"adaptive", adaptive},
                            {"positions", positions},
                            {"residual", residual},
                            {"sinusoids", sinusoids}});
}

}  // namespace
}  // namespace fl::test
