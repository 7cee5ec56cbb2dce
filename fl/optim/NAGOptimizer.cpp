#include "fl/optim/NAGOptimizer.h"

#include <sstream>
#include <stdexcept>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

NAGOptimizer::NAGOptimizer(const std::vector<Variable>& parameters, double learningRate,
                           double momentum, double weightDecay)
    : PerParameterOptimizer(parameters, learningRate, weightDecay),
      momentum_(momentum),
      oldLr_(learningRate) {
  FL_API_CONSTRUCTOR();
  if (!(momentum > 0)) {
    throw std::runtime_error(detail::withCallSite(
        detail::concat("NAGOptimizer: the momentum must be greater than 0, not ", momentum)));
  }
  makeState(1);
}

void NAGOptimizer::update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) {
  decayByRate(data);
  Tensor& velocity = state[0];
  velocity = momentum_ * velocity + grad;
  data = data - learningRate(data.type()) * (grad + momentum_ * velocity);
}

std::string NAGOptimizer::prettyString() const {
  std::ostringstream text;
  text << "NAG (lr=" << lr_ << " ); (previous lr=" << oldLr_ << ");";
  if (weightDecay_ != 0) text << " (weight decay=" << weightDecay_ << ");";
  text << " (Nesterov momentum=" << momentum_ << ")";
  return text.str();
}

}  // namespace fl
