// One step of a recurrent cell, forward and backward: the elementwise part, between the products
// with W and R. The cells are stated under rnn() in AutogradOps.h.
#pragma once

#include <vector>

#include "fl/tensor/Defines.h"
#include "fl/tensor/TensorBase.h"

namespace fl::detail {

// Values of one step are (hidden size, batch); the cell state is empty for all modes but LSTM.
struct RnnState {
  Tensor hidden, cell;
};

struct RnnStep {
  RnnState before, after;
  std::vector<Tensor> kept;  // what backwardStep() reads: activated gates and the like
};

// `a` = W x + bW and `q` = R h + bR, (gate rows, batch), still without their biases (gate rows).
struct RnnPreactivation {
  Tensor a, q, inputBias, recurrentBias;
};

RnnStep forwardStep(RnnMode mode, const RnnPreactivation& values, const RnnState& before);

struct RnnStepGradient {
  Tensor a, q;      // (gate rows, batch)
  RnnState before;  // `hidden` without what goes through q: empty if nothing else does
};

// `after`: the gradient of step.after.
RnnStepGradient backwardStep(RnnMode mode, const RnnStep& step, const RnnState& after);

}  // namespace fl::detail
