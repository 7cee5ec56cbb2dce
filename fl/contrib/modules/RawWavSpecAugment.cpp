#include "fl/contrib/modules/RawWavSpecAugment.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::RawWavSpecAugment)

namespace fl {
namespace {

double hertzOf(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }
double melOf(double hertz) { return 2595 * std::log10(1 + hertz / 700); }

// Of 2 width + 1 samples, for a cutoff as a part of the sample rate; (2 width + 1,1,1,1).
Tensor lowPassFilter(double cutoff, int width) {
  constexpr double kPi = std::numbers::pi;
  std::vector<double> kernel(2 * width + 1);
  for (int i = 0; i <= 2 * width; ++i) {
    const int place = i - width;
    const double window =
        0.42 - 0.5 * std::cos(kPi * i / width) + 0.08 * std::cos(2 * kPi * i / width);
    kernel[i] =
        window * (place == 0 ? 2 * kPi * cutoff : std::sin(2 * kPi * cutoff * place) / place);
  }
  const double sum = std::accumulate(kernel.begin(), kernel.end(), 0.0);
  for (double& value : kernel) value /= sum;
  return Tensor::fromVector(Shape({2 * width + 1, 1, 1, 1}), kernel, dtype::f32);
}

}  // namespace

RawWavSpecAugment::RawWavSpecAugment(int tWarpW, int fMaskF, int nFMask, int tMaskT, float tMaskP,
                                     int nTMask, int nMels, int lowFreqHz, int highFreqHz,
                                     int sampleRate, int maxKernelSize, MaskingStrategy mStrategy)
    : Cloneable(tWarpW, fMaskF, nFMask, tMaskT, tMaskP, nTMask, mStrategy),
      nMels_(nMels),
      lowFreqHz_(lowFreqHz),
      highFreqHz_(highFreqHz),
      sampleRate_(sampleRate),
      maxKernelSize_(maxKernelSize) {
  FL_API_CONSTRUCTOR();
  check("RawWavSpecAugment");
  FL_USER_CHECK(nMels > 0, "RawWavSpecAugment: nMels must be positive, not ", nMels);
  FL_USER_CHECK(lowFreqHz >= 0 && lowFreqHz < highFreqHz && highFreqHz <= sampleRate / 2,
                "RawWavSpecAugment: frequencies must rise from 0 to half the sample rate ",
                sampleRate, ", not from ", lowFreqHz, " to ", highFreqHz);
  makeFilters();
}

void RawWavSpecAugment::makeFilters() {
  const double low = melOf(lowFreqHz_), high = melOf(highFreqHz_);
  std::vector<double> ends(nMels_ + 1);
  for (int i = 0; i <= nMels_; ++i) {
    ends[i] = hertzOf(low + i * (high - low) / nMels_) / sampleRate_;
  }
  filters_.assign(nMels_ + 1, Tensor());
  firstBin_ = 0;
  for (int i = 0; i <= nMels_; ++i) {
    const double transition = ends[std::max(i - 1, 0)] / 4;
    const int width = static_cast<int>(2 / (1e-6 + transition));
    // Transition bands widen with the frequency: what is too long comes first.
    if (ends[i] <= 0 || 2 * width + 1 > maxKernelSize_) {
      firstBin_ = i + 1;
    } else {
      filters_[i] = lowPassFilter(ends[i], width);
    }
  }
  FL_USER_CHECK(firstBin_ < nMels_, prettyString(), ": filters of up to ", maxKernelSize_,
                " samples divide no two bins");
}

Variable RawWavSpecAugment::lowPass(const Variable& wave, int bin) const {
  const Variable filter = noGrad(filters_[bin].astype(wave.type()));
  return conv2d(wave, filter, 1, 1, static_cast<int>(filter.dim(0) / 2), 0);
}

Variable RawWavSpecAugment::removeBand(const Variable& wave) {
  const int low = drawInteger(firstBin_, nMels_);
  const int high = drawInteger(low, std::min(nMels_, low + freqMaskF_) + 1);
  return low == high ? wave : wave - (lowPass(wave, high) - lowPass(wave, low));
}

Variable RawWavSpecAugment::forward(const Variable& input) {
  FL_API_ENTRY();
  FL_USER_CHECK(!input.isCalcGrad(), prettyString(), ": has no gradient for its input");
  if (!train_) return input;
  FL_USER_CHECK(input.ndim() == 3, prettyString(), ": the input must be (time, channel, batch), ",
                "not ", typeToString(input.type(), input.shape()));
  if (filters_.empty()) makeFilters();
  Variable wave = moddims(input, Shape({input.dim(0), input.dim(1) * input.dim(2), 1, 1}));
  for (int i = 0; i < numFreqMask_; ++i) wave = removeBand(wave);
  return moddims(replace(wave.tensor(), drawTimes(input.dim(0)), input), input.shape());
}

std::string RawWavSpecAugment::prettyString() const {
  return detail::concat("RawWavSpecAugment ( ", describe(), ", rawWavNMels: ", nMels_,
                        ", rawWavLowFreqHz: ", lowFreqHz_, ", rawWavHighFreqHz: ", highFreqHz_,
                        ", rawWavSampleRate: ", sampleRate_, ", maxKernelSize: ", maxKernelSize_,
                        ",  )");
}

}  // namespace fl
