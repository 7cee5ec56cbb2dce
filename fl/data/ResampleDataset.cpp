#include "fl/data/ResampleDataset.h"

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

ResampleDataset::ResampleDataset(std::shared_ptr<const Dataset> dataset)
    : ResampleDataset(std::move(dataset), [](int64_t idx) { return idx; }) {}

ResampleDataset::ResampleDataset(std::shared_ptr<const Dataset> dataset,
                                 std::vector<int64_t> resampleVec)
    : dataset_(std::move(dataset)) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(dataset_, "ResampleDataset: the dataset is null");
  resample(std::move(resampleVec));
}

ResampleDataset::ResampleDataset(std::shared_ptr<const Dataset> dataset,
                                 const PermutationFunction& resampleFn, int n)
    : dataset_(std::move(dataset)) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(dataset_, "ResampleDataset: the dataset is null");
  std::vector<int64_t> indices(n < 0 ? dataset_->size() : n);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = resampleFn(static_cast<int64_t>(i));
  resample(std::move(indices));
}

int64_t ResampleDataset::size() const { return static_cast<int64_t>(resampleVec_.size()); }

std::vector<Tensor> ResampleDataset::get(const int64_t idx) const {
  FL_API_ENTRY();
  checkIndexBounds(idx);
  return dataset_->get(resampleVec_[idx]);
}

void ResampleDataset::resample(std::vector<int64_t> resampleVec) {
  resampleVec_ = std::move(resampleVec);
}

}  // namespace fl
