#include "fl/data/Utils.h"

#include <algorithm>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/data/TensorDataset.h"

namespace fl {

Tensor makeBatch(const std::vector<Tensor>& data, const Dataset::BatchFunction& batchFn) {
  FL_API_ENTRY();
  if (batchFn) return batchFn(data);
  if (data.empty()) return Tensor();
  const Shape& shape = data[0].shape();
  const int axis = data[0].elements() > 1 ? shape.ndim() : 0;
  std::vector<Tensor> samples;
  for (const Tensor& sample : data) {
    FL_USER_CHECK(sample.shape() == shape, "makeBatch: samples of shapes ", shape, " and ",
                  sample.shape(), " do not batch");
    samples.push_back(sample.astype(data[0].type()));
  }
  return concatenate(samples, axis);
}

std::vector<Tensor> makeBatchFromRange(std::shared_ptr<const Dataset> dataset,
                                       std::vector<Dataset::BatchFunction> batchFns, int64_t start,
                                       int64_t end) {
  FL_API_ENTRY();
  const auto* tensors = dynamic_cast<const TensorDataset*>(dataset.get());
  if (tensors && batchFns.empty()) return tensors->getBatch(start, end);
  std::vector<std::vector<Tensor>> fields;
  for (int64_t i = start; i < end; ++i) {
    const std::vector<Tensor> sample = dataset->get(i);
    fields.resize(std::max(fields.size(), sample.size()));
    for (size_t f = 0; f < sample.size(); ++f) fields[f].push_back(sample[f]);
  }
  std::vector<Tensor> batch;
  for (size_t f = 0; f < fields.size(); ++f) {
    batch.push_back(makeBatch(fields[f], f < batchFns.size() ? batchFns[f] : nullptr));
  }
  return batch;
}

}  // namespace fl
