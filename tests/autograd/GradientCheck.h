// Gradients against central differences, in f64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "fl/autograd/Variable.h"
#include "tests/ErrorOf.h"

namespace fl::test {

// FL_TEST_SEED replays a run; the seed is printed once.
inline std::mt19937_64& generator() {
  static std::mt19937_64 instance = [] {
    const char* text = std::getenv("FL_TEST_SEED");
    const unsigned long seed = text ? std::strtoul(text, nullptr, 10) : 20240607;
    std::cout << "seed: FL_TEST_SEED=" << seed << std::endl;
    return std::mt19937_64(seed);
  }();
  return instance;
}

// f64, uniform in [low, high).
inline Tensor randomTensor(const Shape& shape, double low = -1, double high = 1) {
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<double> values(shape.elements());
  for (double& value : values) {
    value = draw(generator());
  }
  return Tensor::fromVector(shape, values);
}

inline void expectNear(const std::vector<double>& actual, const std::vector<double>& expected,
                       double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const double scale = std::max({1.0, std::abs(actual[i]), std::abs(expected[i])});
    EXPECT_LE(std::abs(actual[i] - expected[i]), tolerance * scale)
        << "element " << i << ": " << actual[i] << " instead of " << expected[i];
  }
}

inline std::vector<double> valuesOf(const Tensor& tensor) {
  return tensor.astype(dtype::f64).toHostVector<double>();
}

using Function = std::function<Variable(const std::vector<Variable>& inputs)>;

namespace detail {

// sum(weights * f(inputs)), so that every element of the result counts differently.
inline double weightedSum(const Function& f, const std::vector<Tensor>& inputs,
                          const std::vector<double>& weights) {
  std::vector<Variable> variables;
  for (const Tensor& input : inputs) {
    variables.emplace_back(input, false);
  }
  const std::vector<double> result = valuesOf(f(variables).tensor());
  double sum = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    sum += weights[i] * result[i];
  }
  return sum;
}

}  // namespace detail

// d sum(weights * f) / d input, element by element, against the gradients that backward() makes.
// Inputs are f64; f must be smooth within 1e-5 of them.
inline void expectGradients(const Function& f, const std::vector<Tensor>& inputs,
                            double tolerance = 1e-6) {
  std::vector<Variable> variables;
  for (const Tensor& input : inputs) {
    variables.emplace_back(input, true);
  }
  Variable result = f(variables);
  const Tensor weights = randomTensor(result.shape(), 0.5, 1.5);
  result.backward(Variable(weights, false));
  const std::vector<double> weightValues = valuesOf(weights);

  for (size_t n = 0; n < inputs.size(); ++n) {
    SCOPED_TRACE("input " + std::to_string(n));
    ASSERT_TRUE(variables[n].isGradAvailable());
    ASSERT_EQ(variables[n].grad().shape(), inputs[n].shape());
    ASSERT_EQ(variables[n].grad().type(), dtype::f64);
    const std::vector<double> center = valuesOf(inputs[n]);
    std::vector<double> expected(center.size());
    for (size_t i = 0; i < center.size(); ++i) {
      const double step = 1e-5 * std::max(1.0, std::abs(center[i]));
      std::vector<Tensor> moved = inputs;
      std::vector<double> values = center;
      values[i] = center[i] + step;
      moved[n] = Tensor::fromVector(inputs[n].shape(), values);
      const double above = detail::weightedSum(f, moved, weightValues);
      values[i] = center[i] - step;
      moved[n] = Tensor::fromVector(inputs[n].shape(), values);
      const double below = detail::weightedSum(f, moved, weightValues);
      expected[i] = (above - below) / (2 * step);
    }
    expectNear(valuesOf(variables[n].grad().tensor()), expected, tolerance);
  }
}

}  // namespace fl::test
