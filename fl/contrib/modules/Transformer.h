// A layer of a transformer.
#pragma once

#include "fl/contrib/modules/Block.h"

namespace fl {

// Self-attention, then two Linears with ReLU between them, each with a residual connection and a
// LayerNorm over the features: of the sum, or with preLN of the part before it is added.
//
// Takes {x, padMask} or {previous, x, padMask} and gives one Variable like x (C,T,B).
// padMask (T,B), or of another time, which is resized: 1 where a place counts, 0 where it is
// padding; or empty. An example that is all padding gives NaN. previous (C,T',B): what came before
// x, which is attended to as well; T' < bptt, if bptt is not 0, and padMask must be empty.
//
// useMask: no place sees later ones; and of `previous`, place i sees those from i on, so that each
// sees as far back if T' = T. bptt: how far apart two places have an embedding of their relative
// position, which is learnt; 0 for none. Parameters: these embeddings (2 bptt - 1, headDim) if bptt
// > 0, the Linears' weights, without biases, of the two and of query, key, value and result, and a
// scalar weight and bias of each LayerNorm.
// Shapes: (modelDim,T,B), kept
class Transformer : public detail::AttentionBlock {
 public:
  Transformer(int32_t modelDim, int32_t headDim, int32_t mlpDim, int32_t nHeads, int32_t bptt,
              float pDropout, float pLayerdrop, bool useMask = false, bool preLN = false);
  FL_BASIC_CONTAINER_CLONING(Transformer)

  std::vector<Variable> forward(const std::vector<Variable>& input) override;
  // Throw std::invalid_argument outside [0, 1].
  void setDropout(float value);
  void setLayerDropout(float value);
  std::string prettyString() const override;

 private:
  Transformer() = default;
  FL_SAVE_LOAD_WITH_BASE(detail::AttentionBlock, useMask_, preLN_)
  Variable selfAttention(const std::vector<Variable>& input);
  Variable mlp(const Variable& input);
  void check(const std::vector<Variable>& input) const;

  bool useMask_ = false;
  bool preLN_ = false;
};

}  // namespace fl
