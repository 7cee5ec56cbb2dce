// A part of a dataset.
#pragma once

#include "fl/data/Dataset.h"

namespace fl {

// Sample i is sample offset + i of `dataset`; `length` samples, or all from there on if it is -1.
// Throws std::invalid_argument for a part that does not lie in the dataset.
class SpanDataset : public Dataset {
 public:
  SpanDataset(std::shared_ptr<const Dataset> dataset, const int64_t offset,
              const int64_t length = -1);

  int64_t size() const override;
  std::vector<Tensor> get(const int64_t idx) const override;

 private:
  std::shared_ptr<const Dataset> dataset_;
  int64_t offset_ = 0;
  int64_t size_ = 0;
};

}  // namespace fl
