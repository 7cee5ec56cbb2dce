#include "fl/nn/modules/AdaptiveSoftMax.h"

#include <cmath>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::AdaptiveSoftMax)

namespace fl {

AdaptiveSoftMax::AdaptiveSoftMax(int inputSize, const std::vector<int>& cutoff, float divValue)
    : cutoff_(cutoff), divValue_(divValue) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(!cutoff.empty() && cutoff[0] > 0, "AdaptiveSoftMax: needs positive cut-offs, not ",
                detail::axesToString(cutoff));
  FL_USER_CHECK(inputSize > 0 && divValue >= 1, "AdaptiveSoftMax: inputs must be positive and ",
                "divValue at least 1, not ", inputSize, " and ", divValue);
  const int clusters = static_cast<int>(cutoff.size()) - 1;
  double divisor = 1;  // as AdaptiveEmbedding's, whose weights may be tied to these
  params_ = {kaimingUniform(Shape({cutoff[0] + clusters, inputSize}), inputSize)};
  for (int i = 0; i < clusters; ++i) {
    const int classes = cutoff[i + 1] - cutoff[i];
    FL_USER_CHECK(classes > 0, "AdaptiveSoftMax: the cut-offs ", detail::axesToString(cutoff),
                  " must ascend");
    divisor = std::floor(divisor * divValue);
    const int rank = static_cast<int>(inputSize / divisor);
    FL_USER_CHECK(rank > 0, "AdaptiveSoftMax: the rank of cluster ", i, ", ", inputSize, " / ",
                  divisor, ", must be positive");
    params_.push_back(kaimingUniform(Shape({rank, inputSize}), inputSize));
    params_.push_back(kaimingUniform(Shape({classes, rank}), rank));
  }
}

Variable AdaptiveSoftMax::logProbabilities(const Variable& inputs) const {
  const auto weight = [&](size_t i) { return detail::toType(params_[i], inputs.type()); };
  const Dim inputSize = params_[0].dim(1);
  FL_USER_CHECK(inputs.ndim() > 0 && inputs.dim(0) == inputSize, prettyString(),
                ": the input must be (", inputSize, ", ...), not ",
                typeToString(inputs.type(), inputs.shape()));
  const Variable samples = moddims(inputs, {inputSize, -1});
  const Variable head = logSoftmax(matmul(weight(0), samples), 0);
  std::vector<Variable> parts = {head(range(0, cutoff_[0]))};
  for (size_t i = 0; i + 1 < cutoff_.size(); ++i) {
    const Variable tail = matmul(weight(2 + 2 * i), matmul(weight(1 + 2 * i), samples));
    const auto cluster = static_cast<Dim>(cutoff_[0] + i);
    parts.push_back(logSoftmax(tail, 0) + head(range(cluster, cluster + 1)));
  }
  Shape shape = inputs.shape();
  shape[0] = cutoff_.back();
  return moddims(concatenate(parts, 0), shape);
}

Variable AdaptiveSoftMax::forward(const Variable& input) {
  FL_API_ENTRY();
  return logProbabilities(input);
}

Variable AdaptiveSoftMax::predict(const Variable& inputs) const {
  FL_API_ENTRY();
  return Variable(argmax(logProbabilities(inputs).tensor(), 0, /*keepDims=*/true), false);
}

std::string AdaptiveSoftMax::prettyString() const {
  std::string text = "Adaptive Softmax (";
  for (size_t i = 0; i < cutoff_.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(cutoff_[i]);
  }
  return text + ")";
}

}  // namespace fl
