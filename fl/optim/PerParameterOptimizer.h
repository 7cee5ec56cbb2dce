// The frame of the optimizers of fl/optim: a rule that updates one parameter at a time, with state
// tensors of its own for each and a weight decay for all.
//
// The rule computes in f32 where a parameter is f16 or bf16, and its state is f32 then: the squares
// of small gradients would vanish in f16. The parameter itself stays 16 bits wide. Everything else
// is computed and kept in the parameter's dtype.
#pragma once

#include "fl/optim/Optimizers.h"

namespace fl {

class PerParameterOptimizer : public FirstOrderOptimizer {
 public:
  void step() override;
  void stepIf(const Tensor& condition) override;

 protected:
  PerParameterOptimizer(const std::vector<Variable>& parameters, double learningRate,
                        double weightDecay)
      : FirstOrderOptimizer(parameters, learningRate), weightDecay_(weightDecay) {}
  PerParameterOptimizer() = default;

  // For each parameter `tensors` state tensors like it, then `scalars` of shape {}; all 0.
  void makeState(int tensors, int scalars = 0);
  // Before and after the updates of a step; a null condition holds.
  virtual void beginStep(const Tensor* /*condition*/) {}
  virtual void endStep() {}
  virtual void update(Tensor& data, const Tensor& grad, std::vector<Tensor>& state) = 0;
  // data = data - weightDecay data, or weightDecay learningRate data; nothing is recorded without
  // weight decay.
  void decay(Tensor& data) const;
  void decayByRate(Tensor& data) const;
  // "name (weight decay=0.1)", or the name alone without one.
  std::string withWeightDecay(const std::string& name) const;

  double weightDecay_ = 0;

 private:
  FL_SAVE_LOAD_WITH_BASE(FirstOrderOptimizer, weightDecay_, states_)

  // Of one parameter; a null condition holds.
  void updateIf(const Tensor* condition, Variable& parameter, std::vector<Tensor>& state);
  void updateAllIf(const Tensor* condition);

  std::vector<std::vector<Tensor>> states_;  // by parameter
};

}  // namespace fl
