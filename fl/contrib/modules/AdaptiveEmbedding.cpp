#include "fl/contrib/modules/AdaptiveEmbedding.h"

#include <cmath>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::AdaptiveEmbedding)

namespace fl {

AdaptiveEmbedding::AdaptiveEmbedding(int embeddingDim, std::vector<int> cutoff, float divValue)
    : embeddingDim_(embeddingDim), cutoff_(std::move(cutoff)), divValue_(divValue) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(!cutoff_.empty() && divValue >= 1, "AdaptiveEmbedding: needs a cutoff and a ",
                "divValue of at least 1, not ", cutoff_.size(), " cutoffs and ", divValue);
  double divisor = 1;
  for (size_t bucket = 0; bucket < cutoff_.size(); ++bucket) {
    const int words = cutoff_[bucket] - (bucket > 0 ? cutoff_[bucket - 1] : 0);
    const int size = static_cast<int>(embeddingDim_ / divisor);
    FL_USER_CHECK(words > 0 && size > 0, prettyString(), ": bucket ", bucket, " has ", words,
                  " words with embeddings of ", size, " elements; both must be positive");
    params_.push_back(normal(words, size, std::sqrt(1.0 / size), 0));
    params_.push_back(glorotUniform(Shape({embeddingDim_, size}), size, embeddingDim_));
    divisor = std::floor(divisor * divValue_);
  }
}

Variable AdaptiveEmbedding::embed(const Tensor& words, size_t bucket) const {
  const auto number = [](int value) { return full(Shape({1}), value, dtype::s32); };
  const bool first = bucket == 0, last = bucket + 1 == cutoff_.size();
  const int low = first ? 0 : cutoff_[bucket - 1], high = cutoff_[bucket];
  // Words of other buckets look up some word of this one; those of none stay out of range.
  Tensor index = words;
  if (!first) index = maximum(index, number(low));
  if (!last) index = minimum(index, number(high - 1));
  const Variable rows = params_[2 * bucket](index - number(low), span);
  const Variable all = matmulNT(params_[2 * bucket + 1], rows);
  if (first && last) return all;
  const Tensor inside = words >= number(low) && words < number(high);
  return all * noGrad(reshape(inside, Shape({1, words.dim(0)})).astype(all.type()));
}

Variable AdaptiveEmbedding::forward(const Variable& input) {
  FL_API_ENTRY();
  const Tensor words = reshape(input.tensor(), Shape({input.elements()})).astype(dtype::s32);
  Variable result = embed(words, 0);
  for (size_t bucket = 1; bucket < cutoff_.size(); ++bucket) result = result + embed(words, bucket);
  std::vector<Dim> shape = input.shape().get();
  shape.insert(shape.begin(), embeddingDim_);
  return moddims(result, Shape(shape));
}

std::string AdaptiveEmbedding::prettyString() const {
  std::string cutoffs;
  for (int cutoff : cutoff_) cutoffs += (cutoffs.empty() ? "" : ", ") + std::to_string(cutoff);
  return detail::concat("AdaptiveEmbedding (dim: ", embeddingDim_, "), (cutoff: ", cutoffs,
                        "), (divValue: ", divValue_, ")");
}

}  // namespace fl
