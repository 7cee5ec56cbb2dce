#include "fl/contrib/modules/Conformer.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/modules/Conv2D.h"
#include "fl/nn/modules/LayerNorm.h"

CEREAL_REGISTER_TYPE(fl::Conformer)

namespace fl {
namespace {

enum Child {
  kFirstHalf,
  kSecondHalf = kFirstHalf + 3,
  kAttention = kSecondHalf + 3,
  kAttentionNorm = kAttention + 4,
  kConvIn,
  kConvOut,
  kConvOverTime,
  kConvNorm1,
  kConvNorm2,
  kNorm,
};

}  // namespace

Conformer::Conformer(int32_t modelDim, int32_t headDim, int32_t mlpDim, int32_t nHeads,
                     int32_t posEmbContextSize, int32_t convKernelSize, float pDropout,
                     float pLayerDropout)
    : mlpDim_(mlpDim), convKernelSize_(convKernelSize) {
  FL_API_CONSTRUCTOR();
  initialize("Conformer", modelDim, headDim, mlpDim, nHeads, posEmbContextSize, pDropout,
             pLayerDropout);
  FL_USER_CHECK(convKernelSize > 0, "Conformer: the convolution's kernel must be positive, not ",
                convKernelSize);
  for (int half = 0; half < 2; ++half) {
    addLinear(modelDim, mlpDim);
    addLinear(mlpDim, modelDim);
    addNorm();
  }
  addAttention(headDim);
  addNorm();
  addLinear(modelDim, 2 * modelDim);
  addLinear(modelDim, modelDim);
  add(Conv2D(modelDim, modelDim, convKernelSize, 1, 1, 1, (convKernelSize - 1) / 2, 0, 1, 1, true,
             modelDim));
  addNorm();
  addNorm();
  addNorm();
}

void Conformer::addNorm() { add(LayerNorm(std::vector<int>{0}, 1e-5, true, modelDim_)); }

Variable Conformer::feedForward(int firstChild, const Variable& input) {
  const Variable inner = swish(apply(firstChild, apply(firstChild + 2, input)), 1.0);
  return drop(apply(firstChild + 1, drop(inner)));
}

Variable Conformer::conv(const Variable& input) {
  const Dim time = input.dim(1), batch = input.dim(2);
  const Variable gated = gatedlinearunit(apply(kConvIn, apply(kConvNorm1, input)), 0);
  const Variable images = moddims(transpose(gated, Shape({1, 0, 2})), Shape({time, 1, -1, batch}));
  // The convolution pads both ends alike.
  const Variable padded = convKernelSize_ % 2 == 1 ? images : padding(images, {{1, 0}}, 0.0);
  const Variable mixed = moddims(apply(kConvOverTime, padded), Shape({time, -1, batch}));
  const Variable inner = swish(apply(kConvNorm2, transpose(mixed, Shape({1, 0, 2}))), 1.0);
  return drop(apply(kConvOut, inner));
}

std::vector<Variable> Conformer::forward(const std::vector<Variable>& input) {
  FL_API_ENTRY();
  FL_USER_CHECK(input.size() == 2, prettyString(), ": takes {input, padding mask}, not ",
                input.size(), " Variables");
  Variable x = input[0];
  checkInputs(x, input[1]);
  const Variable layer = drawLayer(x.type());
  x = x + scaled(0.5 * feedForward(kFirstHalf, x), layer);
  const Variable normed = apply(kAttentionNorm, x);
  x = x + scaled(drop(attend(normed, normed, kAttention, Variable(), input[1])), layer);
  x = x + scaled(conv(x), layer);
  x = x + scaled(0.5 * feedForward(kSecondHalf, x), layer);
  return {apply(kNorm, x)};
}

std::string Conformer::prettyString() const {
  return detail::concat("Conformer (modelDim: ", modelDim_, "), (mlpDim: ", mlpDim_,
                        "), (nHeads: ", nHeads_, "), (pDropout: ", pDropout_,
                        "), (pLayerDropout: ", pLayerDropout_, "), (posEmbContextSize: ", context_,
                        "), (convKernelSize: ", convKernelSize_, ") ");
}

}  // namespace fl
