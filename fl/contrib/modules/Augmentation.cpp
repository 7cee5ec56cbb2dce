#include "fl/contrib/modules/Augmentation.h"

#include <algorithm>

#include "fl/base/Error.h"
#include "fl/nn/Init.h"

namespace fl::detail {

Augmentation::Augmentation(int tWarpW, int fMaskF, int nFMask, int tMaskT, float tMaskP, int nTMask,
                           MaskingStrategy mStrategy)
    : timeWarpW_(tWarpW),
      freqMaskF_(fMaskF),
      numFreqMask_(nFMask),
      timeMaskT_(tMaskT),
      timeMaskP_(tMaskP),
      numTimeMask_(nTMask),
      maskStrategy_(mStrategy) {}

void Augmentation::check(const char* module) const {
  FL_USER_CHECK(numFreqMask_ == 0 || (numFreqMask_ > 0 && freqMaskF_ > 0), module, ": ",
                numFreqMask_, " masks of up to ", freqMaskF_, " frequencies are none");
  FL_USER_CHECK(numTimeMask_ == 0 || (numTimeMask_ > 0 && timeMaskT_ > 0), module, ": ",
                numTimeMask_, " masks of up to ", timeMaskT_, " times are none");
  FL_USER_CHECK(numTimeMask_ == 0 || (timeMaskP_ > 0 && timeMaskP_ <= 1), module,
                ": the part of the times that a mask may cover must be in (0, 1], not ",
                timeMaskP_);
}

int Augmentation::drawInteger(int low, int high) {
  return std::uniform_int_distribution<int>(low, high - 1)(engine_);
}

Tensor Augmentation::drawRuns(Dim places, int count, int maxLength) {
  std::vector<char> masked(places, 0);
  for (int i = 0; i < count && maxLength > 0; ++i) {
    const int more = drawInteger(0, maxLength);
    const int start = drawInteger(0, static_cast<int>(places) - more);
    std::fill_n(masked.begin() + start, more + 1, 1);
  }
  return Tensor::fromVector(masked);
}

Tensor Augmentation::drawTimes(Dim times) {
  const auto most = static_cast<int>(static_cast<float>(times) * timeMaskP_);
  return drawRuns(times, numTimeMask_, std::min(timeMaskT_, most));
}

Tensor Augmentation::drawFrequencies(Dim frequencies) {
  return drawRuns(frequencies, numFreqMask_, freqMaskF_);
}

Variable Augmentation::replace(const Tensor& x, const Tensor& masked, const Variable& input) const {
  if (maskStrategy_ == MaskingStrategy::ZERO) return noGrad(where(masked, 0.0, x));
  return noGrad(where(masked, mean(input.tensor()).astype(x.type()), x));
}

std::string Augmentation::describe() const {
  return concat("W: ", timeWarpW_, ", F: ", freqMaskF_, ", mF: ", numFreqMask_, ", T: ", timeMaskT_,
                ", p: ", timeMaskP_, ", mT: ", numTimeMask_);
}

}  // namespace fl::detail
