#include "fl/nn/modules/Linear.h"

#include <cmath>
#include <sstream>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::Linear)

namespace fl {

Linear::Linear(int inputSize, int outputSize, bool bias)
    : nIn_(inputSize), nOut_(outputSize), bias_(bias) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(inputSize > 0 && outputSize > 0, "Linear: sizes must be positive, not ", inputSize,
                " and ", outputSize);
  params_ = {kaimingUniform(Shape({nOut_, nIn_}), nIn_)};
  if (bias_) {
    const double bound = std::sqrt(1.0 / nIn_);
    params_.push_back(uniform(Shape({nOut_}), -bound, bound));
  }
}

Linear::Linear(const Variable& w) : CloneableUnaryModule<Linear>({w}) {
  FL_API_CONSTRUCTOR();
  takeSizes(w);
}

Linear::Linear(const Variable& w, const Variable& b)
    : CloneableUnaryModule<Linear>({w, b}), bias_(true) {
  FL_API_CONSTRUCTOR();
  takeSizes(w);
  FL_USER_CHECK(b.shape() == Shape({w.dim(0)}), "Linear: bias ", b.shape(), " does not fit weight ",
                w.shape());
}

void Linear::takeSizes(const Variable& w) {
  FL_USER_CHECK(w.ndim() == 2, "Linear: the weight ", typeToString(w.type(), w.shape()),
                " must have two dimensions");
  nIn_ = static_cast<int>(w.dim(1));
  nOut_ = static_cast<int>(w.dim(0));
}

Variable Linear::forward(const Variable& input) {
  FL_API_ENTRY();
  const Variable weight = detail::toType(params_[0], input.type());
  return bias_ ? linear(input, weight, detail::toType(params_[1], input.type()))
               : linear(input, weight);
}

std::string Linear::prettyString() const {
  std::ostringstream text;
  text << "Linear (" << nIn_ << "->" << nOut_ << ")"
       << (bias_ ? " (with bias)" : " (without bias)");
  return text.str();
}

}  // namespace fl
