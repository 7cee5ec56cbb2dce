// A dataset under other indices.
#pragma once

#include "fl/data/Dataset.h"

namespace fl {

// Sample i is sample resampleVec[i] of `dataset`. Indices may repeat or be left out.
class ResampleDataset : public Dataset {
 public:
  // The identity.
  explicit ResampleDataset(std::shared_ptr<const Dataset> dataset);
  ResampleDataset(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> resampleVec);
  // Sample i is sample resampleFn(i), called once for each of `n` indices (-1: dataset->size()).
  ResampleDataset(std::shared_ptr<const Dataset> dataset, const PermutationFunction& resampleFn,
                  int n = -1);

  int64_t size() const override;
  std::vector<Tensor> get(const int64_t idx) const override;
  void resample(std::vector<int64_t> resampleVec);

 protected:
  std::shared_ptr<const Dataset> dataset_;
  std::vector<int64_t> resampleVec_;
};

}  // namespace fl
