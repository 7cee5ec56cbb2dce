// Whether the parts of an operator of one's own say the same, on every backend and in every mode: a
// suite that any test may run.
//
//   EXPECT_THAT(fl::checkOperator(square, {.cases = {{{{fl::dtype::f32, {8, 4}}}}}}), IsEmpty());
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fl/custom/Operator.h"

namespace fl {

struct Conformance {
  // Operands, drawn uniformly from [low, high); integers from what lies in it, unsigned ones from 0
  // on.
  struct Case {
    std::vector<ir::ValueType> operands;
    double low = -1, high = 1;
  };
  std::vector<Case> cases;
  // What the operator has to refuse.
  std::vector<std::vector<ir::ValueType>> refused = {};
  // How far floats may lie from the reference: in units of the dtype at its largest element.
  double units = 4;
  // Eager and lazy results have the same bits: not where products are transposed, or convolutions.
  bool isExact = true;
  // What the operator launches between a map of each operand and one of its result, all fused.
  uint64_t kernels = 1;
  // Backends and devices that it runs on, one's own among them; of the first, bits are compared.
  std::vector<std::pair<std::string, std::string>> backends = {
      {"lazy", "cpu"}, {"eager", "cpu"}, {"eager", "ref"}};
  uint64_t seed = 1;
};

// In words, what does not hold; nothing if all does. Of each case: the result's type and elements
// against the rule and the reference on every backend; the same bits lazily, eagerly and replayed
// by fl::compile, and kernels, if the operator has a `compute`; on the first two backends the
// gradients of floating operands against differences of the reference, within 1e-6, and 16 units of
// the dtype, of the largest element.
std::vector<std::string> checkOperator(const CustomOperator& op, const Conformance& conformance);

}  // namespace fl
