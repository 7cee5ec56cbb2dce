#include "fl/data/TransformDataset.h"

#include <algorithm>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

TransformDataset::TransformDataset(std::shared_ptr<const Dataset> dataset,
                                   const std::vector<TransformFunction>& transformFns)
    : dataset_(std::move(dataset)), transformFns_(transformFns) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(dataset_, "TransformDataset: the dataset is null");
}

int64_t TransformDataset::size() const { return dataset_->size(); }

std::vector<Tensor> TransformDataset::get(const int64_t idx) const {
  FL_API_ENTRY();
  checkIndexBounds(idx);
  std::vector<Tensor> sample = dataset_->get(idx);
  for (size_t f = 0; f < std::min(sample.size(), transformFns_.size()); ++f) {
    if (transformFns_[f]) sample[f] = transformFns_[f](sample[f]);
  }
  return sample;
}

}  // namespace fl
