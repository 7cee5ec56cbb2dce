// Learnt embeddings of positions.
#pragma once

#include "fl/nn/modules/Container.h"

namespace fl {

// x + E[:, 0:T], the parameter E (layerDim,maxLen) drawn uniformly within 0.1; in training mode
// with dropout of what is added. Takes and gives one Variable; T may be up to maxLen.
// Shapes: (layerDim,T,B), kept
class PositionEmbedding : public Container {
 public:
  PositionEmbedding(int32_t layerDim, int32_t maxLen, double dropout = 0);
  FL_BASIC_CONTAINER_CLONING(PositionEmbedding)

  std::vector<Variable> forward(const std::vector<Variable>& input) override;
  std::string prettyString() const override;

 private:
  PositionEmbedding() = default;
  FL_SAVE_LOAD_WITH_BASE(Container, dropout_)

  double dropout_ = 0;
};

}  // namespace fl
