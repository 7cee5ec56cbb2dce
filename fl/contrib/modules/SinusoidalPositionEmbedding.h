// Fixed embeddings of positions.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// x * inputScale + E, E[c, t] = sin(t w) for even c and cos(t w) for odd ones, w = 10000^(-2
// floor(c / 2) / layerDim): Vaswani et al., "Attention is all you need", 2017. Takes and gives one
// Variable; E is computed in f32 (f64 for f64) and has no parameters.
// Shapes: (layerDim,T,...), kept
class SinusoidalPositionEmbedding : public CloneableModule<SinusoidalPositionEmbedding> {
 public:
  explicit SinusoidalPositionEmbedding(int32_t layerDim, double inputScale = 1.);

  std::vector<Variable> forward(const std::vector<Variable>& input) override;
  std::string prettyString() const override;

 private:
  SinusoidalPositionEmbedding() = default;
  FL_SAVE_LOAD_WITH_BASE(Module, layerDim_, inputScale_)

  int32_t layerDim_ = 0;
  double inputScale_ = 1;
};

}  // namespace fl
