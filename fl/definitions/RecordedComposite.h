// Calls of composites (fl/tensor/Composite.h) as graphs, which lazy mode records as one node each.
#pragma once

#include <memory>
#include <vector>

#include "fl/base/WordCache.h"
#include "fl/definitions/Trace.h"

namespace fl {

// What calls with operands of the same types compute.
struct RecordedComposite {
  ir::Graph graph;                     // of the operands and, behind them, the constants
  std::vector<TensorValue> constants;  // which all calls share
  ir::Attrs number;                    // tells the graph from others
  size_t bytes = 0;                    // of what its operators compute; views compute nothing

  const ir::ValueType& typeOf(size_t result) const { return graph.type(graph.results()[result]); }
};
using RecordedCompositePtr = std::shared_ptr<const RecordedComposite>;

// Those that were called last. Not thread-safe.
class RecordedComposites {
 public:
  explicit RecordedComposites(TensorBackend& backend) : backend_(backend) {}

  // Null if the operators are recorded one by one: those that no graph stands for, or that depend
  // on more than the operands' types, on how they write to tensors or on a number that the host
  // casts; those that look up elements, whose errors name their operands; and where a result is
  // given twice or has an operand's elements. Runs the function on the first call alone.
  RecordedCompositePtr find(const CompositeCall& call);

 private:
  static constexpr size_t kMost = 4096;
  RecordedCompositePtr record(Trace&& trace);

  TensorBackend& backend_;
  WordCache<RecordedCompositePtr> calls_{kMost};
  WordCache<Dim> numbers_{kMost};  // by graph
  Dim next_ = 0;
};

}  // namespace fl
