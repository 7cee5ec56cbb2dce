#include "fl/data/BatchDataset.h"

#include <algorithm>
#include <numeric>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

BatchDataset::BatchDataset(std::shared_ptr<const Dataset> dataset, int64_t batchsize,
                           BatchDatasetPolicy policy, const std::vector<BatchFunction>& batchfns)
    : dataset_(std::move(dataset)), batchFns_(batchfns), batchSize_(batchsize) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(dataset_, "BatchDataset: the dataset is null");
  FL_USER_CHECK(batchSize_ > 0, "BatchDataset: the batch size must be positive, not ", batchSize_);
  samples_ = dataset_->size();
  const bool divisible = samples_ % batchSize_ == 0;
  FL_USER_CHECK(divisible || policy != BatchDatasetPolicy::DIVISIBLE_ONLY,
                "BatchDataset: ", samples_, " samples are not divisible into batches of ",
                batchSize_);
  const bool partial = !divisible && policy == BatchDatasetPolicy::INCLUDE_LAST;
  size_ = samples_ / batchSize_ + (partial ? 1 : 0);
}

BatchDataset::BatchDataset(std::shared_ptr<const Dataset> dataset,
                           const std::vector<int64_t>& batchSizes,
                           const std::vector<BatchFunction>& batchfns)
    : dataset_(std::move(dataset)), batchFns_(batchfns), ends_(batchSizes.size()) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(dataset_, "BatchDataset: the dataset is null");
  FL_USER_CHECK(!batchSizes.empty(), "BatchDataset: no batch sizes");
  std::partial_sum(batchSizes.begin(), batchSizes.end(), ends_.begin());
  samples_ = dataset_->size();
  size_ = static_cast<int64_t>(ends_.size());
}

int64_t BatchDataset::size() const { return size_; }

std::vector<Tensor> BatchDataset::get(const int64_t idx) const {
  FL_API_ENTRY();
  checkIndexBounds(idx);
  const int64_t start = ends_.empty() ? batchSize_ * idx : (idx == 0 ? 0 : ends_[idx - 1]);
  const int64_t end = ends_.empty() ? start + batchSize_ : ends_[idx];
  return makeBatchFromRange(dataset_, batchFns_, start, std::min(end, samples_));
}

}  // namespace fl
