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
  sum_.add(sum(wide));
  sumOfSquares_.add(sum(wide * wide));
  elements_ += static_cast<double>(vals.elements());
}

std::vector<double> AverageValueMeter::value() const {
  FL_API_ENTRY();
  const double total = weights_ + elements_;
  double mean = mean_;
  double meanOfSquares = meanOfSquares_;
  if (elements_ > 0) {
    mean = (mean_ * weights_ + sum_.value()) / total;
    meanOfSquares = (meanOfSquares_ * weights_ + sumOfSquares_.value()) / total;
  }
  const double squares = squaredWeights_ + elements_;
  return {mean, (meanOfSquares - mean * mean) / (1 - squares / (total * total)), total};
}

void AverageValueMeter::reset() { *this = AverageValueMeter(); }

}  // namespace fl
