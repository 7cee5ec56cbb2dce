// Embeddings of a large vocabulary.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// Embeddings that are shorter for rare words: Baevski and Auli, "Adaptive input representations for
// neural language modeling", 2019. Words [0, cutoff[0]) have embeddings of embeddingDim elements,
// each further bucket [cutoff[i - 1], cutoff[i]) of embeddingDim / divValue^i; a matrix for each
// bucket makes them embeddingDim long. The input holds words, integers or floats; one outside [0,
// last cutoff) is an error, when the result is read at the latest.
//
// All words are looked up in all buckets, at most twice the work of the first one for a divValue of
// 2 or more, so that nothing waits for the words. Parameters: for each bucket the embeddings
// (words,size), normal with deviation sqrt(1 / size), and the matrix (embeddingDim,size) of
// glorotUniform.
// Shapes: (...) to (embeddingDim,...)
class AdaptiveEmbedding : public CloneableUnaryModule<AdaptiveEmbedding> {
 public:
  // Throws std::invalid_argument unless cutoffs rise from above 0 and every bucket's embeddings
  // have an element.
  explicit AdaptiveEmbedding(int embeddingDim, std::vector<int> cutoff, float divValue = 4);
  FL_UNARY_MODULE(embeddingDim_, cutoff_, divValue_)
  AdaptiveEmbedding() = default;
  // The part of the result (embeddingDim, words) that is bucket number `bucket`, 0 elsewhere.
  Variable embed(const Tensor& words, size_t bucket) const;

  int embeddingDim_ = 0;
  std::vector<int> cutoff_;
  float divValue_ = 4;
};

}  // namespace fl
