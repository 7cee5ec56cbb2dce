#include "fl/data/TensorDataset.h"

#include <algorithm>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/data/Utils.h"

namespace fl {
namespace {

// Every dimension but the last whole, the last at `index`.
Tensor alongLast(const Tensor& tensor, const Index& index) {
  std::vector<Index> indices(tensor.ndim(), span);
  indices.back() = index;
  return tensor(indices).copy();
}

Tensor sampleOf(const Tensor& tensor, int64_t idx) {
  return idx < tensor.dim(tensor.ndim() - 1) ? alongLast(tensor, Index(Dim{idx})) : Tensor();
}

}  // namespace

TensorDataset::TensorDataset(const std::vector<Tensor>& dataTensors) : dataTensors_(dataTensors) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(!dataTensors.empty(), "TensorDataset: needs at least one tensor");
  for (const Tensor& tensor : dataTensors_) {
    FL_USER_CHECK(tensor.ndim() > 0, "TensorDataset: a tensor without dimensions has no samples");
    size_ = std::max<int64_t>(size_, tensor.dim(tensor.ndim() - 1));
  }
}

int64_t TensorDataset::size() const { return size_; }

std::vector<Tensor> TensorDataset::get(const int64_t idx) const {
  FL_API_ENTRY();
  checkIndexBounds(idx);
  std::vector<Tensor> sample;
  for (const Tensor& tensor : dataTensors_) sample.push_back(sampleOf(tensor, idx));
  return sample;
}

// One-element samples of several dimensions are batched along their first.
bool TensorDataset::isSliceable(const Tensor& tensor, int64_t start, int64_t end) {
  const Dim samples = tensor.dim(tensor.ndim() - 1);
  return start < end && end <= samples &&
         (tensor.ndim() == 1 || tensor.shape().elements() > samples);
}

std::vector<Tensor> TensorDataset::getBatch(int64_t start, int64_t end) const {
  FL_API_ENTRY();
  std::vector<Tensor> batch;
  for (const Tensor& tensor : dataTensors_) {
    if (isSliceable(tensor, start, end)) {
      batch.push_back(alongLast(tensor, range(start, Dim{end})));
      continue;
    }
    std::vector<Tensor> samples;
    for (int64_t i = start; i < end; ++i) {
      checkIndexBounds(i);
      samples.push_back(sampleOf(tensor, i));
    }
    batch.push_back(makeBatch(samples));
  }
  return batch;
}

}  // namespace fl
