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
// changed. Parameters without a gradient are left as they are. An optimizer is saved with its
// parameters and its state (fl/nn/Serialization.h), and goes on bit for bit where it was.
#pragma once

#include <string>
#include <vector>

#include "fl/autograd/Serialization.h"
#include "fl/autograd/Variable.h"

namespace fl {

class FirstOrderOptimizer {
 public:
  FirstOrderOptimizer(const std::vector<Variable>& parameters, double learningRate);
  virtual ~FirstOrderOptimizer() = default;

  virtual void step() = 0;
  // step() if `condition`, a b8 tensor of one element, is not 0; otherwise parameters and state
  // keep their bits. The optimizers of fl/optim record both outcomes; here, for those of users, the
  // condition is read. Throws std::invalid_argument for any other tensor.
  virtual void stepIf(const Tensor& condition);
  double getLr() const { return lr_; }
  void setLr(double lr) { lr_ = lr; }
  // Drops the gradients of the parameters.
  virtual void zeroGrad();
  virtual std::string prettyString() const = 0;

 protected:
  FirstOrderOptimizer() = default;
  // The learning rate as an operand, of the moment when the step runs: a compiled step
  // (fl::compile) follows setLr().
  Tensor learningRate(dtype type) const;
  // The condition of stepIf(), without dimensions.
  static Tensor scalarCondition(const Tensor& condition);

  std::vector<Variable> parameters_;
  double lr_ = 0;

 private:
  FL_SAVE_LOAD(lr_, parameters_)
};

}  // namespace fl
