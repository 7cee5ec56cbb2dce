// Augmentation of spectrograms.
#pragma once

#include "fl/contrib/modules/Augmentation.h"

namespace fl {

// Masks times and frequencies of spectrograms: Park et al., "SpecAugment: a simple data
// augmentation method for automatic speech recognition", 2019, without time warping: tWarpW is not
// used. In training mode masks, the same in all examples, nFMask times 1 to fMaskF frequencies, and
// nTMask times 1 to tMaskT times, but at most tMaskP of all; in evaluation mode the identity. The
// input wants no gradient. Draws: see Augmentation.
// Shapes: (time,frequency,...), kept
class SpecAugment : public Cloneable<detail::Augmentation, SpecAugment> {
 public:
  SpecAugment(int tWarpW, int fMaskF, int nFMask, int tMaskT, float tMaskP, int nTMask,
              MaskingStrategy mStrategy = MaskingStrategy::ZERO);
  using UnaryModule::forward;
  Variable forward(const Variable& input) override;
  std::string prettyString() const override;

 private:
  SpecAugment() = default;
  FL_SAVE_LOAD_WITH_BASE(detail::Augmentation)
};

}  // namespace fl
