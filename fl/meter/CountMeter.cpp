#include "fl/meter/CountMeter.h"

#include <algorithm>
#include <stdexcept>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

void CountMeter::add(int id, int64_t val) {
  FL_API_ENTRY();
  if (id < 0 || id >= static_cast<int>(counts_.size())) {
    throw std::out_of_range(detail::withCallSite(
        detail::concat("CountMeter: no category ", id, " among ", counts_.size())));
  }
  counts_[id] += val;
}

void CountMeter::reset() { std::fill(counts_.begin(), counts_.end(), 0); }

}  // namespace fl
