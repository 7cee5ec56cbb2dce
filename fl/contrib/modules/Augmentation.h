// Random runs of places that are masked: what SpecAugment and RawWavSpecAugment share.
#pragma once

#include <random>

#include "fl/nn/modules/Module.h"

namespace fl::detail {

// Draws come from a generator of its own, which begins at one seed in every module, continues in a
// copy, and begins again in one that is loaded. They are taken on the host: what is recorded does
// not depend on them, so that one plan serves all.
class Augmentation : public UnaryModule {
 public:
  // What masked elements become: 0, or the mean of all elements of the input.
  enum class MaskingStrategy { ZERO = 0, GLOBAL_MEAN = 1 };

 protected:
  Augmentation() = default;
  Augmentation(int tWarpW, int fMaskF, int nFMask, int tMaskT, float tMaskP, int nTMask,
               MaskingStrategy mStrategy);
  // Throws std::invalid_argument naming `module` for numbers of masks below 0, or above it with
  // lengths that are not positive, or a part of the times outside (0, 1].
  void check(const char* module) const;

  // Uniform in [low, high).
  int drawInteger(int low, int high);
  // b8, true in numTimeMask_ runs of 1 to timeMaskT_ of `times` places, but at most timeMaskP_ of
  // them; in numFreqMask_ runs of 1 to freqMaskF_ of `frequencies`.
  Tensor drawTimes(Dim times);
  Tensor drawFrequencies(Dim frequencies);
  // `x` with what the strategy makes of `input` where `masked` holds, which broadcasts.
  Variable replace(const Tensor& x, const Tensor& masked, const Variable& input) const;
  // "W: 80, F: 27, mF: 1, T: 100, p: 1, mT: 1"
  std::string describe() const;

  int timeWarpW_ = 0;
  int freqMaskF_ = 0;
  int numFreqMask_ = 0;
  int timeMaskT_ = 0;
  float timeMaskP_ = 0;
  int numTimeMask_ = 0;
  MaskingStrategy maskStrategy_ = MaskingStrategy::ZERO;

 private:
  FL_SAVE_LOAD_DECLARE()
  Tensor drawRuns(Dim places, int count, int maxLength);

  std::mt19937 engine_{0};
};

template <class Archive>
void Augmentation::save(Archive& archive, uint32_t version) const {
  applyArchive(archive, version, cereal::base_class<UnaryModule>(this), timeWarpW_, freqMaskF_,
               numFreqMask_, timeMaskT_, timeMaskP_, numTimeMask_, maskStrategy_);
}
template <class Archive>
void Augmentation::load(Archive& archive, uint32_t version) {
  applyArchive(archive, version, cereal::base_class<UnaryModule>(this), timeWarpW_, freqMaskF_,
               numFreqMask_, timeMaskT_, timeMaskP_, numTimeMask_, maskStrategy_);
  engine_.seed(0);
}

}  // namespace fl::detail
