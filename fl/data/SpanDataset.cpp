#include "fl/data/SpanDataset.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

SpanDataset::SpanDataset(std::shared_ptr<const Dataset> dataset, const int64_t offset,
                         const int64_t length)
    : dataset_(std::move(dataset)), offset_(offset) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(dataset_, "SpanDataset: the dataset is null");
  size_ = length == -1 ? dataset_->size() - offset : length;
  FL_USER_CHECK(offset >= 0 && size_ >= 0 && offset + size_ <= dataset_->size(),
                "SpanDataset: samples [", offset, ", ", offset + size_, ") of ", dataset_->size());
}

int64_t SpanDataset::size() const { return size_; }

std::vector<Tensor> SpanDataset::get(const int64_t idx) const {
  FL_API_ENTRY();
  checkIndexBounds(idx);
  return dataset_->get(offset_ + idx);
}

}  // namespace fl
