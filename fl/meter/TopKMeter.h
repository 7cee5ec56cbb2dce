// The share of samples whose class is among the k that a model holds most likely.
#pragma once

#include <cstdint>
#include <utility>

#include "fl/meter/RecordedSum.h"

namespace fl {

// Comparisons are only recorded; getStats() and value() wait for them.
class TopKMeter {
 public:
  // Throws std::invalid_argument unless k > 0.
  explicit TopKMeter(const int k);

  // Scores (classes, batch) of at least k classes, and the class of each sample (batch); else
  // std::invalid_argument.
  void add(const Tensor& output, const Tensor& target);
  void reset();
  // Numbers of correct samples and of all, as if they had been added.
  void set(int32_t correct, int32_t n);
  // The same numbers.
  std::pair<int32_t, int32_t> getStats();
  // In percent; NaN without any sample.
  double value() const;

 private:
  int k_;
  detail::RecordedSum correct_;
  int32_t samples_ = 0;
};

}  // namespace fl
