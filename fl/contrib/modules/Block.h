// What the containers of this folder are made with: children called by their number, and an
// attention layer with the regularization that Transformer and Conformer share.
#pragma once

#include "fl/nn/modules/Container.h"

namespace fl::detail {

class Block : public Container {
 protected:
  // The output of child `id` in the dtype of `input`; the child's name is the ModuleScope of what
  // is recorded.
  Variable apply(int id, const Variable& input);

 private:
  FL_SAVE_LOAD_WITH_BASE(Container)
};

// Vaswani et al., "Attention is all you need", 2017, with learnt embeddings of relative positions,
// the first parameter (2 context - 1, headDim), if context > 0. Layer drop: Fan et al., "Reducing
// transformer depth on demand with structured dropout", 2019.
class AttentionBlock : public Block {
 protected:
  AttentionBlock() = default;
  // What a constructor begins with. Throws std::invalid_argument naming `module` for sizes that are
  // not positive, a negative context, and what setDropouts() throws for.
  void initialize(const char* module, int modelDim, int headDim, int mlpDim, int nHeads,
                  int context, double pDropout, double pLayerDropout);
  // Throws std::invalid_argument naming `module` outside [0, 1].
  void setDropouts(const char* module, double pDropout, double pLayerDropout);

  // Adds a Linear without bias, its weight uniform within sqrt(1 / inputSize).
  void addLinear(int inputSize, int outputSize);
  // Adds the four Linears of attend(): of query, key, value and result.
  void addAttention(int headDim);

  // What each place of x (C,T,B) takes from memory (C,T',B), which ends with x itself. Children
  // firstChild and after are those that addAttention() added. mask: as multiheadAttention() takes
  // it. padMask: empty, or (any time,B) with 1 where a place counts and 0 where it is padding; its
  // time is resized to T by choosing the nearest.
  Variable attend(const Variable& x, const Variable& memory, int firstChild, const Variable& mask,
                  const Variable& padMask);
  // Throws std::invalid_argument unless x is (modelDim,T,B) and padMask as attend() needs it.
  void checkInputs(const Variable& x, const Variable& padMask) const;

  // In training mode, dropout with pDropout.
  Variable drop(const Variable& input) const;
  // In training mode, 0 with probability pLayerDropout, else 1; one draw for all parts of a block.
  // Empty where it is 1 anyway.
  Variable drawLayer(dtype type) const;
  // `part` scaled by what drawLayer() gave.
  static Variable scaled(const Variable& part, const Variable& layer);

  int modelDim_ = 0;
  int nHeads_ = 0;
  int context_ = 0;
  double pDropout_ = 0;
  double pLayerDropout_ = 0;

 private:
  FL_SAVE_LOAD_WITH_BASE(Block, modelDim_, nHeads_, context_, pDropout_, pLayerDropout_)
};

}  // namespace fl::detail
