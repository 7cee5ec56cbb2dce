#include "fl/definitions/RecordedComposite.h"

#include <algorithm>
#include <optional>
#include <set>

namespace fl {
namespace {

bool isView(const ir::Graph& graph, ir::ValueId id) {
  while (!graph.isParameter(id) && ir::opKind(graph.node(id).op) == ir::Kind::View)
    id = graph.node(id).operands[0];
  return graph.isParameter(id);
}

bool isOneNode(const ir::Graph& graph) {
  const std::set<ir::ValueId> results(graph.results().begin(), graph.results().end());
  return !results.empty() && results.size() == graph.results().size() &&
         std::ranges::none_of(results, [&](ir::ValueId id) { return isView(graph, id); }) &&
         std::ranges::none_of(graph.nodes(), [&](const ir::Node& node) {
           const ir::Kind kind = ir::opKind(node.op);
           return node.site.writes() || node.site.indexed() || kind == ir::Kind::Index ||
                  kind == ir::Kind::Update ||
                  (node.op == ir::Op::Cast && graph.isNumber(node.operands[0]));
         });
}

}  // namespace

RecordedCompositePtr RecordedComposites::find(const CompositeCall& call) {
  absl::InlinedVector<int64_t, 48> key(call.words.begin(), call.words.end());
  for (const TensorValue& operand : call.operands) {
    key.push_back(operand->number() != nullptr);
    ir::addWords(&key, operand->valueType());
  }
  if (const RecordedCompositePtr* const found = calls_.find(key)) return *found;
  std::optional<Trace> traced = fl::trace(call);
  RecordedCompositePtr made =
      traced && isOneNode(traced->graph) ? record(std::move(*traced)) : nullptr;
  calls_.insert(key, made);
  return made;
}

RecordedCompositePtr RecordedComposites::record(Trace&& trace) {
  auto made = std::make_shared<RecordedComposite>();
  for (const Number& constant : trace.constants)
    made->constants.push_back(backend_.fromNumber(constant));
  for (const ir::Node& node : trace.graph.nodes()) {
    if (ir::opKind(node.op) != ir::Kind::View)
      made->bytes += bytesOf(node.type.type, node.type.shape);
  }
  const std::vector<int64_t> words = ir::wordsOf(trace.graph);
  if (!numbers_.find(words)) numbers_.insert(words, next_++);
  made->number = {*numbers_.find(words)};
  made->graph = std::move(trace.graph);
  return made;
}

}  // namespace fl
