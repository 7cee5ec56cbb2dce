// Attention of several heads: Vaswani et al., "Attention is all you need", 2017 (arXiv 1706.03762).
#pragma once

#include "fl/nn/modules/Container.h"

namespace fl {

// fl::multiheadAttention between Linear layers: of queries, keys and values before it, and of its
// result. Takes one sequence that attends to itself, or a query, keys and values, and behind those
// a mask (T, keys) that is added to the scores. In training mode the weights of the values go
// through dropout.
// Parameters: weight (dim, dim) and, with bias, bias (dim) of the four layers, in that order.
// Shapes: (dim, T, N), keys and values (dim, keys, N), to (dim, T, N)
class MultiheadAttention : public Container {
 public:
  MultiheadAttention(int dim, int nHeads, double pDropout = 0, bool bias = true);
  FL_BASIC_CONTAINER_CLONING(MultiheadAttention)

  // Throws std::invalid_argument unless there are one, three or four inputs.
  std::vector<Variable> forward(const std::vector<Variable>& inputs) override;
  Variable forward(const Variable& query, const Variable& key, const Variable& value,
                   const Variable& mask = Variable());
  std::string prettyString() const override;

 private:
  MultiheadAttention() = default;
  FL_SAVE_LOAD_WITH_BASE(Container, dim_, nHeads_, pDropout_)
  // Of layer `id`, as (T, dim, N).
  Variable project(int id, const Variable& input) const;

  int dim_ = 0;
  int nHeads_ = 1;
  double pDropout_ = 0;
};

}  // namespace fl
