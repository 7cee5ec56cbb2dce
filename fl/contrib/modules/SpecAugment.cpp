#include "fl/contrib/modules/SpecAugment.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::SpecAugment)

namespace fl {

SpecAugment::SpecAugment(int tWarpW, int fMaskF, int nFMask, int tMaskT, float tMaskP, int nTMask,
                         MaskingStrategy mStrategy)
    : Cloneable(tWarpW, fMaskF, nFMask, tMaskT, tMaskP, nTMask, mStrategy) {
  FL_API_CONSTRUCTOR();
  check("SpecAugment");
}

Variable SpecAugment::forward(const Variable& input) {
  FL_API_ENTRY();
  FL_USER_CHECK(!input.isCalcGrad(), prettyString(), ": has no gradient for its input");
  if (!train_) return input;
  FL_USER_CHECK(input.ndim() >= 2 && (numFreqMask_ == 0 || input.dim(1) >= freqMaskF_),
                prettyString(), ": the input must be (time, frequency, ...) with at least ",
                freqMaskF_, " frequencies, not ", typeToString(input.type(), input.shape()));
  const Tensor frequencies = reshape(drawFrequencies(input.dim(1)), Shape({1, input.dim(1)}));
  return replace(input.tensor(), frequencies || drawTimes(input.dim(0)), input);
}

std::string SpecAugment::prettyString() const { return "SpecAugment ( " + describe() + " )"; }

}  // namespace fl
