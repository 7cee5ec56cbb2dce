#include "fl/meter/TopKMeter.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

TopKMeter::TopKMeter(const int k) : k_(k) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(k > 0, "TopKMeter: k must be greater than 0, not ", k);
}

void TopKMeter::add(const Tensor& output, const Tensor& target) {
  FL_API_ENTRY();
  FL_USER_CHECK(
      output.ndim() == 2 && target.shape() == Shape({output.dim(1)}) && output.dim(0) >= k_,
      "TopKMeter: output ", output.shape(), " and target ", target.shape(),
      " must be (classes, batch) and (batch), with at least ", k_, " classes");
  Tensor values, classes;
  topk(values, classes, output, k_, 0);
  const Tensor matches = classes == reshape(target, {1, target.dim(0)});
  correct_.add(sum(any(matches, {0})));
  samples_ += static_cast<int32_t>(target.dim(0));
}

void TopKMeter::reset() { *this = TopKMeter(k_); }

void TopKMeter::set(int32_t correct, int32_t n) {
  FL_API_ENTRY();
  reset();
  correct_.add(fromScalar(correct));
  samples_ = n;
}

std::pair<int32_t, int32_t> TopKMeter::getStats() {
  FL_API_ENTRY();
  return {static_cast<int32_t>(correct_.value()), samples_};
}

double TopKMeter::value() const {
  FL_API_ENTRY();
  return 100 * correct_.value() / samples_;
}

}  // namespace fl
