// A layer of a conformer.
#pragma once

#include "fl/contrib/modules/Block.h"

namespace fl {

// Half a feed-forward module, self-attention, a convolution over time and the other half, each
// added to its input, and a LayerNorm of the sum: Gulati et al., "Conformer: convolution-augmented
// transformer for speech recognition", 2020, with a LayerNorm where the paper has a batch
// normalization.
//
// Takes {x, padMask} and gives one Variable like x (C,T,B). padMask: as for Transformer.
// posEmbContextSize: as bptt there; its embeddings are the first parameter, if it is not 0. An even
// convKernelSize looks one place farther back than forward.
// Shapes: (modelDim,T,B), kept
class Conformer : public detail::AttentionBlock {
 public:
  Conformer(int32_t modelDim, int32_t headDim, int32_t mlpDim, int32_t nHeads,
            int32_t posEmbContextSize, int32_t convKernelSize, float pDropout,
            float pLayerDropout = 0.);
  FL_BASIC_CONTAINER_CLONING(Conformer)

  std::vector<Variable> forward(const std::vector<Variable>& input) override;
  std::string prettyString() const override;

 private:
  Conformer() = default;
  FL_SAVE_LOAD_WITH_BASE(detail::AttentionBlock, mlpDim_, convKernelSize_)
  void addNorm();
  // The Linears firstChild and firstChild + 1, of what firstChild + 2 normalizes.
  Variable feedForward(int firstChild, const Variable& input);
  Variable conv(const Variable& input);

  int mlpDim_ = 0;
  int convKernelSize_ = 0;
};

}  // namespace fl
