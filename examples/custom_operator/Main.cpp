// An operator of one's own with its gradient and its rule about shapes. It is written in the
// library's operators, so that it is fused with what is around it, forward and backward.
#include <iostream>
#include <stdexcept>

#include "fl/fl.h"
#include "fl/research.h"

// Each value times the sigmoid of its gate, of one shape. Throws std::invalid_argument for two.
fl::Variable gated(const fl::Variable& value, const fl::Variable& gate) {
  if (value.shape() != gate.shape()) {
    throw std::invalid_argument("gated: values " + value.shape().toString() + ", but gates " +
                                gate.shape().toString());
  }
  const fl::Tensor v = value.tensor(), open = fl::sigmoid(gate.tensor());
  const auto gradient = [v, open](std::vector<fl::Variable>& inputs, const fl::Variable& output) {
    const fl::Tensor d = output.tensor();
    inputs[0].addGrad(fl::Variable(d * open, false));
    inputs[1].addGrad(fl::Variable(d * v * open * (1 - open), false));
  };
  return fl::Variable(v * open, {value.withoutData(), gate.withoutData()}, gradient);
}

int main() {
  fl::Variable value(fl::rand({8, 4}), /*calcGrad=*/true), gate(fl::rand({8, 4}), true);
  fl::sync();
  const auto kernels = [] { return fl::runtime::counters().kernelLaunches.load(); };
  const auto before = kernels();
  auto loss = fl::sum(gated(value, gate) * 2, {0, 1});
  loss.backward();
  const float first = loss.scalar<float>();
  std::cout << "kernels: " << kernels() - before << '\n';

  // The gradient against a difference: the loss with a changed gate.
  constexpr float kStep = 0.01;
  fl::Tensor moved = gate.tensor().copy();
  moved(1, 2) += kStep;
  const auto other = fl::sum(gated(value, fl::Variable(moved, false)) * 2, {0, 1});
  std::cout << "slope: " << (other.scalar<float>() - first) / kStep << ", gradient "
            << gate.grad().tensor()(1, 2).scalar<float>() << '\n';
  try {
    gated(value, fl::Variable(fl::rand({8, 1}), false));
  } catch (const std::invalid_argument& error) {
    std::cout << error.what() << '\n';
  }
}
