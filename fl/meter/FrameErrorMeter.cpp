#include "fl/meter/FrameErrorMeter.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

void FrameErrorMeter::add(const Tensor& output, const Tensor& target) {
  FL_API_ENTRY();
  FL_USER_CHECK(output.shape() == target.shape() && target.ndim() == 1, "FrameErrorMeter: output ",
                output.shape(), " and target ", target.shape(), " must be 1-D and of one shape");
  const Tensor added = sum(output != target).astype(dtype::s64);
  errors_ = errors_ ? *errors_ + added : added;
  count_ += target.elements();
}

double FrameErrorMeter::value() const {
  FL_API_ENTRY();
  const double errors = errors_ ? static_cast<double>(errors_->scalar<long long>()) : 0;
  const double percent = count_ > 0 ? 100 * errors / static_cast<double>(count_) : 0;
  return accuracy_ ? 100 - percent : percent;
}

void FrameErrorMeter::reset() { *this = FrameErrorMeter(accuracy_); }

}  // namespace fl
