// Samples packed into batches.
#pragma once

#include "fl/data/Dataset.h"
#include "fl/data/Utils.h"

namespace fl {

// What becomes of the last samples if the batch size does not divide the number of samples.
enum class BatchDatasetPolicy {
  INCLUDE_LAST = 0,    // a smaller batch
  SKIP_LAST = 1,       // left out
  DIVISIBLE_ONLY = 2,  // the constructor throws std::invalid_argument
};

// Sample i is the batch of samples [i * batchsize, ...) of `dataset`; see makeBatch for its shape.
class BatchDataset : public Dataset {
 public:
  BatchDataset(std::shared_ptr<const Dataset> dataset, int64_t batchsize,
               BatchDatasetPolicy policy = BatchDatasetPolicy::INCLUDE_LAST,
               const std::vector<BatchFunction>& batchfns = {});
  // Batch i has batchSizes[i] samples.
  BatchDataset(std::shared_ptr<const Dataset> dataset, const std::vector<int64_t>& batchSizes,
               const std::vector<BatchFunction>& batchfns = {});

  int64_t size() const override;
  std::vector<Tensor> get(const int64_t idx) const override;

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::vector<BatchFunction> batchFns_;
  // Where each batch ends; empty if all have batchSize_ samples.
  std::vector<int64_t> ends_;
  int64_t batchSize_ = 0;
  int64_t samples_ = 0;
  int64_t size_ = 0;
};

}  // namespace fl
