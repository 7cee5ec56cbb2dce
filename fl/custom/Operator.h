// An operator of one's own as one struct: what types it takes, a plain reference, and what it is in
// the library's operators.
//
//   const fl::CustomOperator square{
//       .name = "square",
//       .type = [](const auto& operands) { return operands[0]; },
//       .reference = [](const auto& x) {
//         std::vector<double> y = x[0].values;
//         for (double& value : y) value *= value;
//         return y;
//       },
//       .compute = [](const auto& x) { return x[0] * x[0]; }};
//   fl::Variable y = square(x);
//
// What `compute` calls is recorded, fused, compiled and printed like all else, and differentiated
// by the tape. checkOperator() of Conformance.h holds the parts against each other.
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <vector>

#include "fl/autograd/Variable.h"
#include "fl/base/CallSite.h"
#include "fl/ir/Graph.h"

namespace fl {

// Elements in the column-major order of the shape.
struct HostValues {
  ir::ValueType type;
  std::vector<double> values;
};

struct CustomOperator {
  std::string name;
  // The result's type. Throws std::invalid_argument for operands that the operator does not take;
  // the name and the caller's line are added to its words.
  std::function<ir::ValueType(const std::vector<ir::ValueType>& operands)> type;
  // The result's elements.
  std::function<std::vector<double>(const std::vector<HostValues>& operands)> reference;
  // Without it the reference runs, on the host: every call reads its operands.
  std::function<Variable(const std::vector<Variable>& operands)> compute = {};
  // What each operand's gradient gets, of its type; an empty tensor where it has none. Without it:
  // the gradient of `compute`, or central differences of the reference, two calls of it an element.
  std::function<std::vector<Tensor>(const std::vector<Tensor>& operands, const Tensor& result,
                                    const Tensor& gradOutput)>
      gradient = {};

  // Throws std::invalid_argument if a part does not keep to the rule of types, too.
  Variable apply(const std::vector<Variable>& operands) const;

  template <std::same_as<Variable>... Operands>
    requires(sizeof...(Operands) > 0)
  [[gnu::noinline]] Variable operator()(const Operands&... operands) const {
    FL_API_ENTRY();
    return apply({operands...});
  }
  template <std::same_as<Tensor>... Operands>
    requires(sizeof...(Operands) > 0)
  [[gnu::noinline]] Tensor operator()(const Operands&... operands) const {
    FL_API_ENTRY();
    return apply({Variable(operands, false)...}).tensor();
  }
};

// On the host, as doubles.
HostValues hostValues(const Tensor& tensor);

// d sum(weights * reference) / d operands[n], by differences of the fourth order.
std::vector<double> differencesOf(const CustomOperator& op, std::vector<HostValues> operands,
                                  size_t n, const std::vector<double>& weights);

}  // namespace fl
