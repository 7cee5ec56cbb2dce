#include "benchmarks/KernelCases.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "fl/fl.h"

namespace fl::bench {
namespace {

constexpr Dim kRows = 4096;
constexpr Dim kFloat = 4;

Tensor numbers(const Shape& shape) {
  const Tensor result = fl::rand(shape) * 4 - 2;
  return Tensor::fromVector(shape, result.toHostVector<float>());
}

// Of the elements of all operands and results in f32; the rest of Workload.
Workload workload(std::string name, std::function<std::function<void()>()> make, Dim read,
                  Dim written) {
  return {std::move(name), std::move(make), read * kFloat, written * kFloat};
}

template <class Function>
Workload forward(std::string name, const std::vector<Shape>& shapes, const Shape& result,
                 Function function) {
  Dim read = 0;
  for (const Shape& shape : shapes) {
    read += shape.elements();
  }
  return workload(
      std::move(name),
      [=] {
        std::vector<Variable> inputs;
        for (const Shape& shape : shapes) {
          inputs.emplace_back(numbers(shape), false);
        }
        return [=] { function(inputs).tensor().value()->data(); };
      },
      read, result.elements());
}

// The result and the gradients of all inputs, for one gradient of the result, which has the shape
// of the first input.
template <class Function>
Workload backward(std::string name, const std::vector<Shape>& shapes, Function function) {
  Dim elements = 0;
  for (const Shape& shape : shapes) {
    elements += shape.elements();
  }
  return workload(
      std::move(name),
      [=] {
        const auto inputs = std::make_shared<std::vector<Variable>>();
        for (const Shape& shape : shapes) {
          inputs->emplace_back(numbers(shape), true);
        }
        const Variable gradient(numbers(shapes[0]), false);
        return [=] {
          Variable result = function(*inputs);
          result.backward(gradient);
          fl::sync();
          for (Variable& input : *inputs) {
            input.zeroGrad();
          }
        };
      },
      elements + shapes[0].elements(), elements + shapes[0].elements());
}

Variable gated(const std::vector<Variable>& v) {
  return tanh(1.1 * v[0] + 0.3) * sigmoid(0.7 * v[0]);
}

Variable biasGelu(const std::vector<Variable>& v) { return exactGelu(v[0] + v[1]); }

Variable biasGeluDropout(const std::vector<Variable>& v) { return fl::dropout(biasGelu(v), 0.1); }

Variable softmax(const std::vector<Variable>& v) { return fl::softmax(v[0], 0); }

// Over the first dimension. Made once: a module begins with parameters of its own.
Variable layerNorm(const std::vector<Variable>& v) {
  static LayerNorm module(/*axis=*/0, /*eps=*/1e-5, /*affine=*/true, /*axisSize=*/768);
  module.setParams(v[1], 0);
  module.setParams(v[2], 1);
  return module(v[0]);
}

Variable dropoutResidualNorm(const std::vector<Variable>& v) {
  return layerNorm({fl::dropout(v[0], 0.1) + v[3], v[1], v[2]});
}

// On each point of one set from all of another, as of masses: with three coordinates last.
Variable forces(const std::vector<Variable>& v) {
  const Shape pairs = {v[1].dim(0), v[0].dim(1), 3};
  const Variable apart = tileAs(v[1], pairs) - tileAs(v[0], pairs);
  const Variable squared = sum(apart * apart, {2}, /*keepDims=*/true) + 1e-2;
  return sum(apart * tileAs(1.0 / (squared * sqrt(squared)), pairs), {0}, /*keepDims=*/true);
}

Workload crossEntropy() {
  constexpr Dim kClasses = 1000;
  return workload(
      "cross entropy, 4096x1000",
      [=] {
        const Variable scores(numbers({kClasses, kRows}), false);
        const Variable labels((fl::rand({kRows}) * kClasses).astype(dtype::s32), false);
        fl::sync();
        return [=] {
          const Variable losses =
              categoricalCrossEntropy(logSoftmax(scores, 0), labels, ReduceMode::NONE);
          losses.tensor().value()->data();
        };
      },
      kClasses * kRows + kRows, kRows);
}

std::function<void()> adamStep(Dim tensors, Dim elements) {
  const auto parameters = std::make_shared<std::vector<Variable>>();
  for (Dim i = 0; i < tensors; ++i) {
    parameters->emplace_back(numbers({elements}), true);
    parameters->back().addGrad(Variable(numbers({elements}), false));
  }
  const auto optimizer = std::make_shared<fl::AdamOptimizer>(*parameters, 1e-3);
  return [=] { optimizer->step(); };
}

// Of a step that is recorded each time, recording more than a thousand operators takes as long as
// the kernel.
std::vector<Workload> adams() {
  constexpr Dim kTensors = 100, kElements = 10000;
  const auto adam = [](const char* name, auto make) {
    return workload(name, make, kTensors * kElements * 4, kTensors * kElements * 3);
  };
  return {adam("Adam, 100 x 10000",
               [] {
                 return [step = adamStep(kTensors, kElements)] {
                   step();
                   fl::sync();
                 };
               }),
          adam("compiled Adam, 100 x 10000", [] {
            return [step = fl::compile(adamStep(kTensors, kElements))]() mutable {
              step();
              fl::sync();
            };
          })};
}

}  // namespace

std::vector<Workload> kernelCases() {
  const Shape wide = {1024, kRows}, normal = {768, kRows}, large = {Dim{1} << 24};
  const Shape points = {1, 2048, 3}, others = {2048, 1, 3};
  const auto sumOver = [&](const std::vector<int>& axes, const Shape& result, const char* name) {
    return forward(name, {wide}, result,
                   [=](const std::vector<Variable>& v) { return sum(v[0], axes); });
  };
  std::vector<Workload> cases = {
      forward("tanh(ax+b) sigmoid(cx), 1000", {{1000}}, {1000}, gated),
      forward("tanh(ax+b) sigmoid(cx), 2^24", {large}, large, gated),
      forward("bias + GELU, 4096x1024", {wide, {1024}}, wide, biasGelu),
      forward("bias + GELU + dropout, 4096x1024", {wide, {1024}}, wide, biasGeluDropout),
      forward("softmax, 4096x1000", {{1000, kRows}}, {1000, kRows}, softmax),
      forward("softmax, 4096x8192", {{8192, kRows}}, {8192, kRows}, softmax),
      crossEntropy(),
      forward("layer norm, 4096x768", {normal, {768}, {768}}, normal, layerNorm),
      forward("dropout + residual + layer norm, 4096x768", {normal, {768}, {768}, normal}, normal,
              dropoutResidualNorm),
      sumOver({1}, {1024}, "sum of 4096x1024 over rows"),
      sumOver({0}, {kRows}, "sum of 4096x1024 over columns"),
      sumOver({0, 1}, {}, "sum of 4096x1024"),
      forward("forces, 2048x2048", {points, others}, points, forces),
      backward("tanh(ax+b) sigmoid(cx) and gradient, 2^24", {large}, gated),
      backward("bias + GELU and gradients, 4096x1024", {wide, {1024}}, biasGelu),
      backward("softmax and gradient, 4096x1000", {{1000, kRows}}, softmax),
      backward("softmax and gradient, 4096x8192", {{8192, kRows}}, softmax),
      backward("layer norm and gradients, 4096x768", {normal, {768}, {768}}, layerNorm),
      backward("forces and gradients, 2048x2048", {points, others}, forces)};
  std::ranges::move(adams(), std::back_inserter(cases));
  return cases;
}

}  // namespace fl::bench
