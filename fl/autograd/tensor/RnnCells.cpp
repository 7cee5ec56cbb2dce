#include "fl/autograd/tensor/RnnCells.h"

namespace fl::detail {
namespace {

// Gates of a step by number, each (hidden size, batch).
class Gates {
 public:
  Gates(const RnnPreactivation& values, Dim hiddenSize) : values_(values), size_(hiddenSize) {}

  Tensor a(int gate) const { return biased(values_.a, values_.inputBias, gate); }
  Tensor q(int gate) const { return biased(values_.q, values_.recurrentBias, gate); }
  Tensor both(int gate) const { return a(gate) + q(gate); }

 private:
  Tensor biased(const Tensor& values, const Tensor& bias, int gate) const {
    const range rows(gate * size_, (gate + 1) * size_);
    return values(rows, span) + bias(rows);
  }

  const RnnPreactivation& values_;
  Dim size_;
};

RnnStep forwardSimple(RnnMode mode, const Gates& gates) {
  const Tensor x = gates.both(0);
  const Tensor hidden = mode == RnnMode::RELU ? maximum(x, fromScalar(0.0, x.type())) : tanh(x);
  return {{}, {hidden, {}}, {}};
}

RnnStep forwardLstm(const Gates& gates, const RnnState& before) {
  const Tensor i = sigmoid(gates.both(0)), f = sigmoid(gates.both(1));
  const Tensor g = tanh(gates.both(2)), o = sigmoid(gates.both(3));
  const Tensor cell = f * before.cell + i * g;
  return {{}, {o * tanh(cell), cell}, {i, f, g, o}};
}

RnnStep forwardGru(const Gates& gates, const RnnState& before) {
  const Tensor r = sigmoid(gates.both(0)), z = sigmoid(gates.both(1));
  const Tensor q = gates.q(2);
  const Tensor n = tanh(gates.a(2) + r * q);
  return {{}, {(1.0 - z) * n + z * before.hidden, {}}, {r, z, n, q}};
}

// Derivatives in terms of the function's value.
Tensor sigmoidSlope(const Tensor& y) { return y * (1.0 - y); }
Tensor tanhSlope(const Tensor& y) { return 1.0 - y * y; }

RnnStepGradient backwardSimple(RnnMode mode, const RnnStep& step, const Tensor& grad) {
  const Tensor& y = step.after.hidden;
  const Tensor x = mode == RnnMode::RELU ? where(y > 0.0, grad, 0.0) : grad * tanhSlope(y);
  return {x, x, {}};
}

RnnStepGradient backwardLstm(const RnnStep& step, const RnnState& after) {
  const Tensor &i = step.kept[0], &f = step.kept[1], &g = step.kept[2], &o = step.kept[3];
  const Tensor squashed = tanh(step.after.cell);
  const Tensor cell = after.cell + after.hidden * o * tanhSlope(squashed);
  const Tensor gates =
      concatenate({cell * g * sigmoidSlope(i), cell * step.before.cell * sigmoidSlope(f),
                   cell * i * tanhSlope(g), after.hidden * squashed * sigmoidSlope(o)},
                  0);
  return {gates, gates, {{}, cell * f}};
}

RnnStepGradient backwardGru(const RnnStep& step, const Tensor& grad) {
  const Tensor &r = step.kept[0], &z = step.kept[1], &n = step.kept[2], &q = step.kept[3];
  const Tensor candidate = grad * (1.0 - z) * tanhSlope(n);
  const Tensor reset = candidate * q * sigmoidSlope(r);
  const Tensor update = grad * (step.before.hidden - n) * sigmoidSlope(z);
  return {concatenate({reset, update, candidate}, 0),
          concatenate({reset, update, candidate * r}, 0),
          {grad * z, {}}};
}

}  // namespace

RnnStep forwardStep(RnnMode mode, const RnnPreactivation& values, const RnnState& before) {
  const Gates gates(values, before.hidden.dim(0));
  RnnStep step = mode == RnnMode::LSTM  ? forwardLstm(gates, before)
                 : mode == RnnMode::GRU ? forwardGru(gates, before)
                                        : forwardSimple(mode, gates);
  step.before = before;
  return step;
}

RnnStepGradient backwardStep(RnnMode mode, const RnnStep& step, const RnnState& after) {
  return mode == RnnMode::LSTM  ? backwardLstm(step, after)
         : mode == RnnMode::GRU ? backwardGru(step, after.hidden)
                                : backwardSimple(mode, step, after.hidden);
}

}  // namespace fl::detail
