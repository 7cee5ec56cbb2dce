// Augmentation of sound.
#pragma once

#include "fl/contrib/modules/Augmentation.h"

namespace fl {

// SpecAugment of samples instead of a spectrogram. In training mode removes, nFMask times, a band
// of 0 to fMaskF of nMels bins, which divide lowFreqHz to highFreqHz evenly on the mel scale; then
// masks nTMask times 1 to tMaskT samples, but at most tMaskP of all. In evaluation mode the
// identity. The input wants no gradient; tWarpW is not used. Draws: see Augmentation.
//
// A band is the difference of two low-pass filters (sinc with a Blackman window: Smith, "The
// scientist and engineer's guide to digital signal processing", 1997, chapter 16), whose transition
// band is a quarter of the next lower bin's frequency. Bins whose filter would be longer than
// maxKernelSize samples are never removed.
// Shapes: (time,channel,batch), kept
class RawWavSpecAugment : public Cloneable<detail::Augmentation, RawWavSpecAugment> {
 public:
  // Throws std::invalid_argument unless 0 <= lowFreqHz < highFreqHz <= sampleRate / 2, and if all
  // filters would be too long.
  RawWavSpecAugment(int tWarpW, int fMaskF, int nFMask, int tMaskT, float tMaskP, int nTMask,
                    int nMels = 80, int lowFreqHz = 0, int highFreqHz = 8000,
                    int sampleRate = 16000, int maxKernelSize = 20000,
                    MaskingStrategy mStrategy = MaskingStrategy::ZERO);
  using UnaryModule::forward;
  Variable forward(const Variable& input) override;
  std::string prettyString() const override;

 private:
  RawWavSpecAugment() = default;
  FL_SAVE_LOAD_DECLARE()
  void makeFilters();
  // `wave` (time,N,1,1) without what is above the lower end of bin `bin`.
  Variable lowPass(const Variable& wave, int bin) const;
  // `wave` without a band that is drawn.
  Variable removeBand(const Variable& wave);

  int nMels_ = 0;
  int lowFreqHz_ = 0;
  int highFreqHz_ = 0;
  int sampleRate_ = 0;
  int maxKernelSize_ = 0;
  // Of the ends of bins, the first firstBin_ empty. They follow from the rest and are not saved:
  // none in a module that was loaded and has not run.
  std::vector<Tensor> filters_;
  int firstBin_ = 0;
};

template <class Archive>
void RawWavSpecAugment::save(Archive& archive, uint32_t version) const {
  detail::applyArchive(archive, version, cereal::base_class<detail::Augmentation>(this), nMels_,
                       lowFreqHz_, highFreqHz_, sampleRate_, maxKernelSize_);
}
template <class Archive>
void RawWavSpecAugment::load(Archive& archive, uint32_t version) {
  detail::applyArchive(archive, version, cereal::base_class<detail::Augmentation>(this), nMels_,
                       lowFreqHz_, highFreqHz_, sampleRate_, maxKernelSize_);
  filters_.clear();
}

}  // namespace fl
