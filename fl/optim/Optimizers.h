// FirstOrderOptimizer: updates parameters from their gradients.
//
//   SGDOptimizer optimizer(model.params(), 1e-1);
//   loss.backward();
//   optimizer.step();
//   optimizer.zeroGrad();
//
// step() records the update of all parameters and ends the segment (fl::eval); it reads no value,
// so nothing has to run in it. The learning rate and all other numbers are run-time arguments of
// the recorded operators: a schedule that changes them reuses the same plan. Gradients are not
// changed. Parameters without a gradient are left as they are.
#pragma once

#include <string>
#include <vector>

#include "fl/autograd/Variable.h"

namespace fl {

class FirstOrderOptimizer {
 public:
  FirstOrderOptimizer(const std::vector<Variable>& parameters, double learningRate);
  virtual ~FirstOrderOptimizer() = default;

  virtual void step() = 0;
  double getLr() const { return lr_; }
  void setLr(double lr) { lr_ = lr; }
  // Drops the gradients of the parameters.
  virtual void zeroGrad();
  virtual std::string prettyString() const = 0;

 protected:
  // Zeros like each parameter, for the state of an update rule.
  std::vector<Tensor> makeState() const;
  // The end of every step().
  void evalParameters();

  std::vector<Variable> parameters_;
  double lr_;
};

}  // namespace fl
