#include "fl/contrib/modules/SinusoidalPositionEmbedding.h"

#include <cmath>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::SinusoidalPositionEmbedding)

namespace fl {
namespace {

// (dim, time)
Tensor sinusoids(Dim dim, Dim time, dtype type) {
  // 16-bit floats do not tell positions beyond a few thousand apart.
  const dtype wide = type == dtype::f64 ? dtype::f64 : dtype::f32;
  const Tensor feature = arange(Shape({dim}), 0, wide);
  const Tensor pair = floor(feature / 2.0);
  const Tensor frequency = exp(pair * (-2 * std::log(10000.0) / static_cast<double>(dim)));
  const Tensor angle = frequency * arange(Shape({1, time}), 1, wide);
  return where(feature > pair * 2.0, cos(angle), sin(angle)).astype(type);
}

}  // namespace

SinusoidalPositionEmbedding::SinusoidalPositionEmbedding(int32_t layerDim, double inputScale)
    : layerDim_(layerDim), inputScale_(inputScale) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(layerDim > 0, "SinusoidalPositionEmbedding: layerDim must be positive, not ",
                layerDim);
}

std::vector<Variable> SinusoidalPositionEmbedding::forward(const std::vector<Variable>& input) {
  FL_API_ENTRY();
  FL_USER_CHECK(input.size() == 1, "SinusoidalPositionEmbedding: takes one input, not ",
                input.size());
  const Variable& x = input[0];
  FL_USER_CHECK(x.ndim() >= 2 && x.dim(0) == layerDim_ && isFloating(x.type()),
                "SinusoidalPositionEmbedding: the input must be floats (", layerDim_,
                ", time, ...), not ", typeToString(x.type(), x.shape()));
  return {x * inputScale_ + noGrad(sinusoids(layerDim_, x.dim(1), x.type()))};
}

std::string SinusoidalPositionEmbedding::prettyString() const {
  return detail::concat("Sinusoidal Position Embedding Layer (embDim: ", layerDim_,
                        "), (input scale ", inputScale_, ")");
}

}  // namespace fl
