#include "fl/meter/FrameErrorMeter.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

void FrameErrorMeter::add(const Tensor& output, const Tensor& target) {
  FL_API_ENTRY();
  FL_USER_CHECK(output.shape() == target.shape() && target.ndim() == 1, "FrameErrorMeter: output ",
                output.shape(), " and target ", target.shape(), " must be 1-D and of one shape");
  errors_.add(sum(output != target));
  count_ += target.elements();
}

double FrameErrorMeter::value() const {
  FL_API_ENTRY();
  const double percent = count_ > 0 ? 100 * errors_.value() / static_cast<double>(count_) : 0;
  return accuracy_ ? 100 - percent : percent;
}

void FrameErrorMeter::reset() { *this = FrameErrorMeter(accuracy_); }

}  // namespace fl
