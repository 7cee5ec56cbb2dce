#include "fl/optim/AdamOptimizer.h"

#include <cmath>

#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/base/CallSite.h"
#include "fl/tensor/Capture.h"
#include "fl/tensor/Composite.h"

namespace fl {
namespace {

Number asNumber(double value) { return Number::of(value, dtype::f64); }

}  // namespace

AdamOptimizer::AdamOptimizer(const std::vector<Variable>& parameters, double learningRate,
                             double beta1, double beta2, double epsilon, double weightDecay)
    : MomentOptimizer(parameters, learningRate, beta1, beta2, epsilon, weightDecay) {
  FL_API_CONSTRUCTOR();
  makeState(2);
  skipped_ = Tensor::fromVector(Shape(), std::vector<double>{0});
}

void AdamOptimizer::beginStep(const Tensor* condition) {
  if (condition) {
    skips_ = true;
    detail::setState(skipped_, where(*condition, skipped_, skipped_ + 1.0));
  }
  coefficients_.reset();  // those of a step that threw
  const Tensor count = hostNumber([this] { return asNumber(++count_); });
  if (skips_) {
    const Tensor steps = count - skipped_;
    const auto correction = [&](double beta) {
      return 1.0 - power(fromScalar(beta, dtype::f64), steps);
    };
    const Tensor root = sqrt(correction(beta2_));
    correctedLr_ = learningRate(dtype::f64) * root / correction(beta1_);
    correctedEpsilon_ = correctsEpsilon() ? epsilon_ * root : fromScalar(epsilon_, dtype::f64);
    return;
  }
  // Computed here, for an element each, they would cost a launch.
  const auto root = [this] { return std::sqrt(1 - std::pow(beta2_, count_)); };
  correctedLr_ =
      hostNumber([this, root] { return asNumber(lr_ * root() / (1 - std::pow(beta1_, count_))); });
  correctedEpsilon_ = hostNumber(
      [this, root] { return asNumber(correctsEpsilon() ? epsilon_ * root() : epsilon_); });
}

const AdamOptimizer::Coefficients& AdamOptimizer::coefficients(dtype type) {
  if (!coefficients_ || coefficients_->type != type) {
    const auto number = [type](double value) { return fromScalar(value, type); };
    coefficients_ = {type,
                     correctedLr_.astype(type),
                     correctedEpsilon_.astype(type),
                     number(beta1_),
                     number(1 - beta1_),
                     number(beta2_),
                     number(1 - beta2_)};
  }
  return *coefficients_;
}

void AdamOptimizer::update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) {
  decayByRate(data);
  const auto updated = [](const Tensor& data, const Tensor& grad, const Tensor& first,
                          const Tensor& second, const Tensor& rate, const Tensor& epsilon,
                          const Tensor& keepFirst, const Tensor& takeFirst,
                          const Tensor& keepSecond, const Tensor& takeSecond) {
    const Tensor mean = keepFirst * first + takeFirst * grad;
    const Tensor square = keepSecond * second + takeSecond * (grad * grad);
    return std::vector<Tensor>{data - rate * mean / (sqrt(square) + epsilon), mean, square};
  };
  const Coefficients& by = coefficients(data.type());
  std::vector<Tensor> results =
      composite("Adam", updated, data, grad, state[0], state[1], by.rate, by.epsilon, by.keepFirst,
                by.takeFirst, by.keepSecond, by.takeSecond);
  data = std::move(results[0]);
  state[0] = std::move(results[1]);
  state[1] = std::move(results[2]);
}

}  // namespace fl
