#include "fl/meter/AverageValueMeter.h"

#include "fl/base/CallSite.h"

namespace fl {

void AverageValueMeter::add(const double val, const double w) {
  weights_ += w;
  squaredWeights_ += w * w;
  if (weights_ != 0) {
    mean_ += w * (val - mean_) / weights_;
    meanOfSquares_ += w * (val * val - meanOfSquares_) / weights_;
  }
}

void AverageValueMeter::add(const Tensor& vals) {
  FL_API_ENTRY();
  const Tensor wide = vals.astype(dtype::f64);
  const Tensor added = sum(wide);
  const Tensor addedSquares = sum(wide * wide);
  sum_ = sum_ ? *sum_ + added : added;
  sumOfSquares_ = sumOfSquares_ ? *sumOfSquares_ + addedSquares : addedSquares;
  elements_ += static_cast<double>(vals.elements());
}

std::vector<double> AverageValueMeter::value() const {
  FL_API_ENTRY();
  const double total = weights_ + elements_;
  double mean = mean_;
  double meanOfSquares = meanOfSquares_;
  if (sum_) {
    mean = (mean_ * weights_ + sum_->scalar<double>()) / total;
    meanOfSquares = (meanOfSquares_ * weights_ + sumOfSquares_->scalar<double>()) / total;
  }
  const double squares = squaredWeights_ + elements_;
  return {mean, (meanOfSquares - mean * mean) / (1 - squares / (total * total)), total};
}

void AverageValueMeter::reset() { *this = AverageValueMeter(); }

}  // namespace fl
