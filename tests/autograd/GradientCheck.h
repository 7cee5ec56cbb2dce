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

// f64, evenly spaced over [low, high), in any order: where functions choose among elements, or at a
// number in the range, they are smooth around these. The numbers met here fall between them.
inline Tensor spreadTensor(const Shape& shape, double low = -1, double high = 1) {
  std::vector<double> values(shape.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = low + (high - low) * (i + 0.37) / values.size();
  }
  std::shuffle(values.begin(), values.end(), generator());
  return Tensor::fromVector(shape, values);
}

inline double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) {
    result = std::max(result, std::abs(value));
  }
  return result;
}

// Elements that differ by at most `tolerance` times `scale`.
inline void expectNear(const std::vector<double>& actual, const std::vector<double>& expected,
                       double tolerance, double scale) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_LE(std::abs(actual[i] - expected[i]), tolerance * scale)
        << "element " << i << ": " << actual[i] << " instead of " << expected[i];
  }
}

// The same for the largest of the expected elements.
inline void expectNear(const std::vector<double>& actual, const std::vector<double>& expected,
                       double tolerance) {
  expectNear(actual, expected, tolerance, largest(expected));
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

// The derivative of f at 0 by differences of the fourth order: their own error is step^4 / 30 of
// the fifth derivative, and that of rounding 1e-16 / step of f, both far below 1e-6 of a gradient.
// Where single and double steps disagree f has a bend between them, as a ReLU deep inside has:
// smaller steps stay on one side of it.
inline double derivative(const std::function<double(double distance)>& f, double step) {
  for (int attempt = 1;; ++attempt, step /= 10) {
    const double above = f(2 * step);
    const double wide = (above - f(-2 * step)) / (4 * step);
    const double narrow = (f(step) - f(-step)) / (2 * step);
    if (attempt == 3 || std::abs(wide - narrow) <= 1e-7 * (std::abs(narrow) + std::abs(above))) {
      return (4 * narrow - wide) / 3;
    }
  }
}

// d sum(weights * f) / d inputs[n], element by element.
inline std::vector<double> differences(const Function& f, std::vector<Tensor> inputs, size_t n,
                                       const std::vector<double>& weights) {
  const Shape shape = inputs[n].shape();
  std::vector<double> values = valuesOf(inputs[n]), result;
  for (double& value : values) {
    const double center = value;
    const auto at = [&](double distance) {
      value = center + distance;
      inputs[n] = Tensor::fromVector(shape, values);
      return weightedSum(f, inputs, weights);
    };
    result.push_back(derivative(at, 1e-4 * std::max(1.0, std::abs(center))));
    value = center;
  }
  return result;
}

}  // namespace detail

// d sum(weights * f) / d input, element by element, against the gradients that backward() makes:
// within 1e-6 of the largest element of each input's gradient. An input that hardly counts, or does
// not, has rounding for a gradient: it is held against 1e-4 of the largest gradient of all.
// Inputs are f64; f must be smooth within 2e-6 of them.
inline void expectGradients(const Function& f, const std::vector<Tensor>& inputs) {
  std::vector<Variable> variables;
  for (const Tensor& input : inputs) {
    variables.emplace_back(input, true);
  }
  Variable result = f(variables);
  const Tensor weights = randomTensor(result.shape(), 0.5, 1.5);
  result.backward(Variable(weights, false));
  const std::vector<double> weightValues = valuesOf(weights);

  std::vector<std::vector<double>> expected;
  double floor = 0;
  for (size_t n = 0; n < inputs.size(); ++n) {
    expected.push_back(detail::differences(f, inputs, n, weightValues));
    floor = std::max(floor, 1e-4 * largest(expected[n]));
  }
  for (size_t n = 0; n < inputs.size(); ++n) {
    SCOPED_TRACE("input " + std::to_string(n));
    ASSERT_TRUE(variables[n].isGradAvailable());
    ASSERT_EQ(variables[n].grad().shape(), inputs[n].shape());
    ASSERT_EQ(variables[n].grad().type(), dtype::f64);
    expectNear(valuesOf(variables[n].grad().tensor()), expected[n], 1e-6,
               std::max(floor, largest(expected[n])));
  }
}

}  // namespace fl::test
