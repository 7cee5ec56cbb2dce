// Samples that lie along the last dimension of tensors.
#pragma once

#include "fl/data/Dataset.h"

namespace fl {

// Of tensors (5,4,10) and (7,10): 10 samples of shapes (5,4) and (7); of (10): samples of shape
// (1). The size is the largest of the last dimensions; where a tensor has fewer samples, get()
// gives an empty Tensor for it. Samples are values: writing to one does not change the dataset.
class TensorDataset : public Dataset {
 public:
  // Throws std::invalid_argument without tensors, or for one without dimensions.
  explicit TensorDataset(const std::vector<Tensor>& dataTensors);

  int64_t size() const override;
  std::vector<Tensor> get(const int64_t idx) const override;

  // The samples [start, end) of every tensor, batched as makeBatch does (Utils.h), by one slice
  // each.
  std::vector<Tensor> getBatch(int64_t start, int64_t end) const;

 private:
  // Whether all of [start, end) lies in `tensor`, and its slice is what makeBatch would make.
  static bool isSliceable(const Tensor& tensor, int64_t start, int64_t end);

  std::vector<Tensor> dataTensors_;
  int64_t size_ = 0;
};

}  // namespace fl
