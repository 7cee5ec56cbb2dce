// Batching.
#pragma once

#include "fl/data/Dataset.h"

namespace fl {

// Samples of one shape joined along a new last dimension; samples of one element along the first,
// so that n labels of shape (1) give (n). No samples give an empty Tensor. With a batchFn: what
// that makes of them. Throws std::invalid_argument for samples of different shapes.
Tensor makeBatch(const std::vector<Tensor>& data, const Dataset::BatchFunction& batchFn = {});

// makeBatch of each field of the samples [start, end), with the field's function if there is one.
std::vector<Tensor> makeBatchFromRange(std::shared_ptr<const Dataset> dataset,
                                       std::vector<Dataset::BatchFunction> batchFns, int64_t start,
                                       int64_t end);

}  // namespace fl
