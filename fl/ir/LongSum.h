// How the reference interpreter adds.
#pragma once

#include <cmath>

namespace fl::ir {

// A sum of doubles without the errors of a long one (A. Neumaier, "Rundungsfehleranalyse einiger
// Verfahren zur Summation endlicher Summen", 1974).
class LongSum {
 public:
  explicit LongSum(double first = 0) : sum_(first) {}
  void add(double x) {
    const double sum = sum_ + x;
    lost_ += std::fabs(sum_) >= std::fabs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
    sum_ = sum;
  }
  explicit operator double() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_, lost_ = 0;
};

}  // namespace fl::ir
