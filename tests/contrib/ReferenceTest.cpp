// Values and gradients of the modules against PyTorch's.
#include "fl/autograd/Functions.h"
#include "tests/contrib/Checks.h"
#include "tests/reference/References.h"

namespace fl::test {
namespace {

// 2e-9: sums in another order.
constexpr double kUlps = 1e7;

Tensor named(const ReferenceCase& reference, const std::string& what) {
  return reference.input(reference.text("of") + "_" + what);
}

// With the case's parameters in the module, whose inputs may hold x, which then wants a gradient.
void expectAnswers(ReferenceCase& reference, Module& module, const std::vector<Variable>& inputs) {
  for (int i = 0; i < module.numParamTensors(); ++i) {
    const Tensor value = named(reference, "p" + std::to_string(i));
    module.setParams(param(reshape(value, module.param(i).shape())), i);
  }
  Variable y = outputOf(module, inputs);
  reference.expect("y", y.tensor(), kUlps);
  y.backward(noGrad(named(reference, "weights") + 1.5));
  for (int i = 0; i < module.numParamTensors(); ++i) {
    const Variable parameter = module.param(i);
    reference.expectAs(parameter.shape(), "d" + std::to_string(i), parameter.grad().tensor(),
                       kUlps);
  }
  for (const Variable& input : inputs) {
    if (input.isCalcGrad()) {
      reference.expect("dx", input.grad().tensor(), kUlps);
    }
  }
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

TEST(ContribReference, PyTorch) {
  runReferences("contrib", {{"transformer", transformer},
                            {"conformer", conformer},
                            {"tds", tds},
                            {"asymmetric", asymmetric},
                            {"adaptive", adaptive},
                            {"positions", positions},
                            {"sinusoids", sinusoids}});
}

}  // namespace
}  // namespace fl::test
