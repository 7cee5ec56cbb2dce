// The mean and variance of a stream of values.
#pragma once

#include <vector>

#include "fl/meter/RecordedSum.h"

namespace fl {

// Values x with weights w >= 0. Tensors that are added are only recorded; value() waits for them.
class AverageValueMeter {
 public:
  void add(const double val, const double w = 1.0);
  // All elements with weight 1.
  void add(const Tensor& vals);
  // {mean, variance, sum of weights} with mean = sum(w x) / sum(w) and the unbiased variance
  // (sum(w x^2) / sum(w) - mean^2) / (1 - sum(w^2) / sum(w)^2); NaN where that divides 0 by 0.
  std::vector<double> value() const;
  void reset();

 private:
  // Of the values added as numbers.
  double mean_ = 0;
  double meanOfSquares_ = 0;
  double weights_ = 0;
  double squaredWeights_ = 0;
  // Of the elements of tensors.
  detail::RecordedSum sum_;
  detail::RecordedSum sumOfSquares_;
  double elements_ = 0;
};

}  // namespace fl
