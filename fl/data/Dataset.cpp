#include "fl/data/Dataset.h"

#include <stdexcept>

#include "fl/base/Error.h"

namespace fl {

void Dataset::checkIndexBounds(int64_t idx) const {
  if (idx < 0 || idx >= size()) {
    throw std::out_of_range(
        detail::withCallSite(detail::concat("Dataset: no sample ", idx, " among ", size())));
  }
}

}  // namespace fl
