#include "fl/definitions/GraphRunner.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Detail.h"

namespace fl {

std::vector<Tensor> runGraph(const ir::Graph& graph, const std::vector<Tensor>& parameters) {
  FL_API_ENTRY();
  FL_USER_CHECK(parameters.size() == graph.parameters().size(), "runGraph: ", parameters.size(),
                " tensors for ", graph.parameters().size(), " parameters");
  std::vector<TensorValue> values;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ir::ValueType& type = graph.parameters()[i].type;
    FL_USER_CHECK(parameters[i].type() == type.type && parameters[i].shape() == type.shape,
                  "runGraph: parameter ", i, " is ", type.toString(), ", not ",
                  typeToString(parameters[i].type(), parameters[i].shape()));
    values.push_back(parameters[i].value());
  }
  std::vector<int> uses = ir::useCounts(graph);
  for (const ir::Node& node : graph.nodes()) {
    std::vector<TensorValue> operands;
    for (ir::ValueId operand : node.operands) operands.push_back(values[operand]);
    values.push_back(detail::applyOp(node.op, std::move(operands), node.attrs));
    // A value that no later node reads is let go of.
    for (ir::ValueId operand : node.operands) {
      if (--uses[operand] == 0) values[operand] = nullptr;
    }
  }
  std::vector<Tensor> results;
  for (ir::ValueId result : graph.results()) results.emplace_back(values[result]);
  return results;
}

}  // namespace fl
