// Dropout: Hinton et al., "Improving neural networks by preventing co-adaptation of feature
// detectors", 2012.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// In training mode drops elements with probability `ratio` and scales the others by 1 / (1 -
// ratio); in evaluation mode the identity. Throws std::invalid_argument for a ratio outside [0, 1].
// Shapes: any, kept
class Dropout : public CloneableUnaryModule<Dropout> {
 public:
  /* implicit */ Dropout(double ratio = 0.5);
  FL_UNARY_MODULE(ratio_)

  double ratio_;
};

}  // namespace fl
