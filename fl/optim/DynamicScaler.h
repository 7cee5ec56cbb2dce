// Scales the loss of 16-bit training, so that small gradients do not vanish in f16, and finds the
// factor by itself: Micikevicius et al., "Mixed precision training", 2018.
//
//   scaler.scale(loss).backward();
//   const auto finite = scaler.unscale(model.params());
//   clipGradNorm(model.params(), 1);     // the gradients are what they would be without scaling
//   optimizer.stepIf(finite.tensor());   // `if (finite) optimizer.step()` would wait for them
//   scaler.update();
//
// The factor is a tensor and both outcomes are recorded: nothing of this reads a value.
#pragma once

#include <vector>

#include "fl/autograd/Serialization.h"
#include "fl/autograd/Variable.h"
#include "fl/optim/Utils.h"

namespace fl {

// Below this the factor is not halved any more.
inline constexpr double kAmpMinimumScaleFactorValue = 1e-4;

class DynamicScaler {
 public:
  // Throws std::invalid_argument unless 0 < initFactor <= maxFactor and updateInterval > 0. Factors
  // that are powers of two change no bit of a gradient that stays normal.
  explicit DynamicScaler(double initFactor = 65536, double maxFactor = 16777216,
                         unsigned updateInterval = 2000);

  // The loss times the factor, in f32 if it is of 16 bits.
  Variable scale(const Variable& loss);
  // Divides the gradients by the factor; those of 16 bits become f32, in which the optimizers of
  // fl/optim take them. Says whether all elements of all gradients are finite; else the factor is
  // halved. For all parameters at once, once a step.
  RecordedScalar<bool> unscale(const std::vector<Variable>& parameters);
  // Doubles the factor, up to maxFactor, after every updateInterval steps in a row whose gradients
  // were finite. unscale() has recorded that already, so that the step's plan is all there is.
  void update();
  // Waits for the latest factor.
  double getScaleFactor() const;

 private:
  FL_SAVE_LOAD(now_.factor, now_.finiteSteps, next_.factor, next_.finiteSteps, maxFactor_,
               updateInterval_)

  // f32 scalars.
  struct State {
    Tensor factor;
    Tensor finiteSteps;  // in a row, since the factor changed
  };
  static void set(State* state, const State& to);

  State now_;
  State next_;  // after update()
  double maxFactor_;
  unsigned updateInterval_;
};

}  // namespace fl
