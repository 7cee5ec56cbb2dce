#include "fl/meter/MSEMeter.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

void MSEMeter::add(const Tensor& output, const Tensor& target) {
  FL_API_ENTRY();
  FL_USER_CHECK(output.shape() == target.shape(), "MSEMeter: output ", output.shape(),
                " and target ", target.shape(), " must be of one shape");
  const Tensor difference = output.astype(dtype::f64) - target.astype(dtype::f64);
  squares_.add(sum(difference * difference));
  ++samples_;
}

double MSEMeter::value() const {
  FL_API_ENTRY();
  return samples_ > 0 ? squares_.value() / static_cast<double>(samples_) : 0;
}

void MSEMeter::reset() { *this = MSEMeter(); }

}  // namespace fl
