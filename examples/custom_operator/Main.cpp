// An operator of one's own: its rule of types, a reference, what it is in the library's operators,
// by which it is fused with what is around it, forward and backward, and a gradient. The suite
// holds these against each other; its exit code says whether they agree.
#include <cmath>
#include <iostream>
#include <stdexcept>
#include <vector>

#include "fl/fl.h"
#include "fl/research.h"

// Each value times the sigmoid of its gate, of one shape.
const fl::CustomOperator gated{
    .name = "gated",
    .type =
        [](const auto& operands) {
          if (operands.size() != 2 || operands[0] != operands[1]) {
            throw std::invalid_argument("a gate for each value, of its type, is wanted");
          }
          return operands[0];
        },
    .reference =
        [](const auto& operands) {
          std::vector<double> result = operands[0].values;
          for (size_t i = 0; i < result.size(); ++i) {
            result[i] /= 1 + std::exp(-operands[1].values[i]);
          }
          return result;
        },
    .compute = [](const auto& x) { return x[0] * fl::sigmoid(x[1]); },
    // One sigmoid where the tape's would be made of the result's and its own.
    .gradient =
        [](const auto& x, const auto&, const auto& gradOutput) {
          const fl::Tensor open = fl::sigmoid(x[1]), each = gradOutput * open;
          return std::vector<fl::Tensor>{each, each * x[0] * (1 - open)};
        }};

int main() {
  fl::Variable value(fl::rand({8, 4}), /*calcGrad=*/true), gate(fl::rand({8, 4}), true);
  fl::sync();
  const auto before = fl::runtime::counters().kernelLaunches.load();
  auto loss = fl::sum(gated(value, gate) * 2, {0, 1});
  loss.backward();
  loss.scalar<float>();
  std::cout << "kernels: " << fl::runtime::counters().kernelLaunches - before << '\n';

  const fl::ir::ValueType matrix{fl::dtype::f32, {8, 4}}, exact{fl::dtype::f64, {5, 3}},
      column{fl::dtype::f32, {8, 1}};
  const auto wrong = fl::checkOperator(
      gated, {.cases = {{{matrix, matrix}}, {{exact, exact}}}, .refused = {{matrix, column}}});
  for (const std::string& each : wrong) std::cout << each << '\n';
  std::cout << "wrong: " << wrong.size() << '\n';
  return wrong.empty() ? 0 : 1;
}
