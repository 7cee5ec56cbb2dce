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

// d sum(weights * f) / d inputs[n], element by element: differences of the fourth order, whose own
// error is step^4 / 30 of the fifth derivative, and that of rounding 1e-16 / step of f. Both stay
// far below 1e-6 of a gradient.
inline std::vector<double> differences(const Function& f, std::vector<Tensor> inputs, size_t n,
                                       const std::vector<double>& weights) {
  const Shape shape = inputs[n].shape();
  std::vector<double> values = valuesOf(inputs[n]), result;
  for (double& value : values) {
    const double center = value, step = 1e-4 * std::max(1.0, std::abs(center));
    const auto at = [&](int steps) {
      value = center + steps * step;
      inputs[n] = Tensor::fromVector(shape, values);
      return weightedSum(f, inputs, weights);
    };
    result.push_back((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * step));
    value = center;
  }
  return result;
}

}  // namespace detail

// d sum(weights * f) / d input, element by element, against the gradients that backward() makes:
// within 1e-6 of the largest element of each input's gradient. An input that hardly counts, or does
// not, has rounding for a gradient: it is held against 1e-4 of the largest gradient of all.
// Inputs are f64; f must be smooth within 2e-4 of them.
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

// The message of the exception of type E that `call` throws; a failure if it throws none.
template <typename E, typename Call>
std::string messageOf(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing of the expected type was thrown";
  return "";
}

}  // namespace fl::test
