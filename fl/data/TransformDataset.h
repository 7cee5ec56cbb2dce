// A dataset whose fields go through functions.
#pragma once

#include "fl/data/Dataset.h"

namespace fl {

// Field f of a sample is transformFns[f] of it; a null function, or none, leaves it as it is.
class TransformDataset : public Dataset {
 public:
  TransformDataset(std::shared_ptr<const Dataset> dataset,
                   const std::vector<TransformFunction>& transformFns);

  int64_t size() const override;
  std::vector<Tensor> get(const int64_t idx) const override;

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::vector<TransformFunction> transformFns_;
};

}  // namespace fl
