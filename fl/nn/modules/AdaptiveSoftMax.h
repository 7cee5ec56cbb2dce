// Softmax over many classes of very unequal frequency: Grave et al., "Efficient softmax
// approximation for GPUs", 2017 (arXiv 1609.04309).
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// Log-probabilities of cutoff.back() classes, the frequent ones first. Those below cutoff[0] have a
// weight each in the head; each later range of classes, cluster i, has one for all of them, and a
// tail of rank inputSize / divValue^(i + 1) that tells them apart.
// Parameters: the head (cutoff[0] + clusters, inputSize), and of each cluster (rank, inputSize) and
// (classes, rank), drawn by kaimingUniform.
// Shapes: (inputSize, ...) to (C, ...)
class AdaptiveSoftMax : public CloneableUnaryModule<AdaptiveSoftMax> {
 public:
  AdaptiveSoftMax() = default;
  // Throws std::invalid_argument unless the cut-offs are positive and ascend, divValue is at least
  // 1 and every rank is positive.
  AdaptiveSoftMax(int inputSize, const std::vector<int>& cutoff, float divValue = 4);
  // The most probable class of each sample: (1, ...), without a gradient.
  Variable predict(const Variable& inputs) const;
  std::vector<int> getCutoff() const { return cutoff_; }
  FL_UNARY_MODULE(cutoff_, divValue_)
  Variable logProbabilities(const Variable& inputs) const;

  std::vector<int> cutoff_;
  float divValue_ = 4;
};

}  // namespace fl
