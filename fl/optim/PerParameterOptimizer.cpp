#include "fl/optim/PerParameterOptimizer.h"

#include <sstream>

#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/base/CallSite.h"
#include "fl/optim/Utils.h"
#include "fl/tensor/Capture.h"
#include "fl/tensor/Compute.h"

namespace fl {

// Each is a value of its own, in a segment that ends here: the first step is the plan of all
// others.
void PerParameterOptimizer::makeState(int tensors, int scalars) {
  for (const Variable& parameter : parameters_) {
    const dtype type = computeType(parameter.type());
    std::vector<Tensor>& state = states_.emplace_back();
    for (int i = 0; i < tensors + scalars; ++i) {
      state.push_back(full(i < tensors ? parameter.shape() : Shape(), 0.0, type));
    }
  }
  for (std::vector<Tensor>& state : states_) {
    for (Tensor& tensor : state) fl::eval(tensor);
  }
}

void PerParameterOptimizer::step() {
  FL_API_ENTRY();
  updateAllIf(nullptr);
}

void PerParameterOptimizer::stepIf(const Tensor& condition) {
  FL_API_ENTRY();
  const Tensor scalar = scalarCondition(condition);
  updateAllIf(&scalar);
}

void PerParameterOptimizer::updateAllIf(const Tensor* condition) {
  beginStep(condition);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].isGradAvailable()) updateIf(condition, parameters_[i], states_[i]);
  }
  endStep();
  for (Variable& parameter : parameters_) fl::eval(parameter.tensor());
}

void PerParameterOptimizer::updateIf(const Tensor* condition, Variable& parameter,
                                     std::vector<Tensor>& state) {
  const dtype type = parameter.type();
  const dtype wide = computeType(type);
  Tensor data = parameter.tensor().astype(wide);
  std::vector<Tensor> updated = state;
  update(data, parameter.grad().tensor().astype(wide), updated);
  const auto set = [condition](Tensor& tensor, const Tensor& value) {
    detail::setState(tensor, condition ? where(*condition, value, tensor) : value);
  };
  set(parameter.tensor(), data.astype(type));
  for (size_t i = 0; i < state.size(); ++i) {
    set(state[i], updated[i]);
  }
}

void PerParameterOptimizer::decay(Tensor& data) const {
  if (weightDecay_ != 0) data = data - weightDecay_ * data;
}

void PerParameterOptimizer::decayByRate(Tensor& data) const {
  if (weightDecay_ != 0) {
    const auto factor = [this, type = data.type()] { return Number::of(weightDecay_ * lr_, type); };
    data = data - hostNumber(factor) * data;
  }
}

std::string PerParameterOptimizer::withWeightDecay(const std::string& name) const {
  std::ostringstream text;
  text << name;
  if (weightDecay_ != 0) text << " (weight decay=" << weightDecay_ << ")";
  return text.str();
}

}  // namespace fl
