// Batch normalisation: Ioffe and Szegedy, 2015 (arXiv 1502.03167).
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// (x - mean) / sqrt(variance + eps) * weight + bias with one of each for each index along the
// feature axes `featAxis`, which must be neighbours and have featSize indices together.
//
// In training mode, and always without trackStats, mean and variance are the batch's; they update
// the running ones r to (1 - momentum) r + momentum b, with a negative momentum to the average over
// all batches. Otherwise the running ones are taken. With affine, the parameters are the weight
// (featSize), uniform in [0, 1], and the bias (featSize), 0.
// Shapes: any, kept
class BatchNorm : public CloneableUnaryModule<BatchNorm> {
 public:
  BatchNorm(int featAxis, int featSize, double momentum = 0.1, double eps = 1e-5,
            bool affine = true, bool trackStats = true);
  BatchNorm(const std::vector<int>& featAxis, int featSize, double momentum = 0.1,
            double eps = 1e-5, bool affine = true, bool trackStats = true);
  BatchNorm(const BatchNorm& other);
  BatchNorm& operator=(const BatchNorm& other);
  BatchNorm(BatchNorm&& other) = default;
  BatchNorm& operator=(BatchNorm&& other) = default;
  FL_UNARY_MODULE(featAxis_, featSize_, numBatchesTracked_, runningMean_, runningVar_, momentum_,
                  epsilon_, affine_, trackStats_)

 protected:
  BatchNorm() = default;

  // Statistics and parameters as of a new module.
  void initialize();

  std::vector<int> featAxis_;
  int featSize_ = 0;
  int numBatchesTracked_ = 0;
  // f32; empty without trackStats.
  Variable runningMean_, runningVar_;
  double momentum_ = 0.1;
  double epsilon_ = 1e-5;
  bool affine_ = true;
  bool trackStats_ = true;
};

}  // namespace fl
