#include "fl/optim/AdamOptimizer.h"

#include <cmath>

#include "fl/base/CallSite.h"

namespace fl {
namespace {

Tensor asScalar(double value) { return fromScalar(value, dtype::f64); }
Tensor asScalar(const Tensor& value) { return value; }

}  // namespace

AdamOptimizer::AdamOptimizer(const std::vector<Variable>& parameters, double learningRate,
                             double beta1, double beta2, double epsilon, double weightDecay)
    : MomentOptimizer(parameters, learningRate, beta1, beta2, epsilon, weightDecay) {
  FL_API_ENTRY();
  makeState(2);
  skipped_ = Tensor::fromVector(Shape(), std::vector<double>{0});
}

template <typename T>
void AdamOptimizer::correct(const T& first, const T& second) {
  using std::sqrt;
  const T root = sqrt(second);
  correctedLr_ = asScalar(lr_ * root / first);
  correctedEpsilon_ = correctsEpsilon() ? asScalar(epsilon_ * root) : asScalar(epsilon_);
}

void AdamOptimizer::beginStep(const Tensor* condition) {
  ++count_;
  if (condition) {
    skips_ = true;
    skipped_ = where(*condition, skipped_, skipped_ + 1.0);
  }
  if (!skips_) {
    return correct(1 - std::pow(beta1_, count_), 1 - std::pow(beta2_, count_));
  }
  const Tensor steps = static_cast<double>(count_) - skipped_;
  correct(1.0 - power(asScalar(beta1_), steps), 1.0 - power(asScalar(beta2_), steps));
}

void AdamOptimizer::update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) {
  Tensor& first = state[0];
  Tensor& second = state[1];
  decay(data, lr_);
  first = beta1_ * first + (1 - beta1_) * grad;
  second = beta2_ * second + (1 - beta2_) * (grad * grad);
  const dtype type = data.type();
  data = data - correctedLr_.astype(type) * first / (sqrt(second) + correctedEpsilon_.astype(type));
}

}  // namespace fl
