#include "fl/autograd/Utils.h"

#include "fl/base/CallSite.h"

namespace fl {

bool allClose(const Variable& a, const Variable& b, double absTolerance) {
  FL_API_ENTRY();
  return allClose(a.tensor(), b.tensor(), absTolerance);
}

}  // namespace fl
