// Batch normalisation over (before, features, after): the feature axes merged into one, and what
// precedes and follows them, which is averaged over. 16-bit floats are computed in f32.
//
// The mean is subtracted before anything is multiplied: where the deviation is near 0, the share of
// the mean in x * scale would be large, and its rounding error all that is left.
#include <algorithm>

#include "fl/autograd/tensor/ComposedAutogradExtension.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/tensor/Composite.h"

namespace fl {
namespace {

using In = const Tensor&;

// How a tensor is seen as (before, features, after).
struct FeatureAxes {
  FeatureAxes(const Tensor& input, const std::vector<int>& axes) {
    const Shape& shape = input.shape();
    const std::string type = "batchnorm: " + typeToString(input.type(), shape);
    FL_USER_CHECK(isFloating(input.type()), type, ": needs a floating dtype");
    FL_USER_CHECK(!axes.empty(), type, ": needs feature axes");
    std::vector<int> sorted = axes;
    std::sort(sorted.begin(), sorted.end());
    const int first = sorted.front(), last = sorted.back();
    FL_USER_CHECK(first >= 0 && last < shape.ndim(), type, ": no dimension ",
                  first < 0 ? first : last);
    for (size_t i = 0; i < sorted.size(); ++i) {
      FL_USER_CHECK(sorted[i] == first + static_cast<int>(i), type,
                    ": the feature axes must be neighbours");
    }
    for (int i = 0; i < shape.ndim(); ++i) {
      (i < first ? before : i > last ? after : features) *= shape[i];
    }
  }

  // One value a feature, to meet tensors of view()'s shape.
  Tensor row(const Tensor& values) const { return reshape(values, {1, features, 1}); }
  Tensor view(const Tensor& tensor) const {
    const Tensor merged = reshape(tensor, {before, features, after});
    const dtype type = computeType(tensor.type());
    return type == tensor.type() ? merged : merged.astype(type);
  }
  // The sums over an empty batch are 0, and so are its mean, variance and gradients.
  Dim count() const { return std::max<Dim>(before * after, 1); }

  Dim before = 1, features = 1, after = 1;
};

void checkParameter(const char* name, const Tensor& parameter, const Tensor& input,
                    const FeatureAxes& axes) {
  if (parameter.isEmpty()) return;
  const dtype type = computeType(input.type());
  FL_USER_CHECK(parameter.shape().elements() == axes.features && parameter.type() == type,
                "batchnorm: ", typeToString(input.type(), input.shape()), " with ", name, " ",
                typeToString(parameter.type(), parameter.shape()), ": needs ", axes.features,
                " elements of ", type);
}

// Of an argument of batchnormBackward's.
void checkCount(const char* name, const Tensor& values, const Tensor& input,
                const FeatureAxes& axes) {
  FL_USER_CHECK(values.shape().elements() == axes.features,
                "batchnormBackward: ", typeToString(input.type(), input.shape()), " with ", name,
                " ", typeToString(values.type(), values.shape()), ": needs ", axes.features,
                " elements");
}

Tensor sumOverBatch(const Tensor& view) { return sum(view, {0, 2}, /*keepDims=*/true); }

// running + momentum (batch - running), in the shape of `running`. Every operator of it reads the
// batch's value, so that all fuse with the reduction.
Tensor updatedRunning(const Tensor& running, const Tensor& batch, const FeatureAxes& features,
                      const Tensor& momentum) {
  const Tensor row = features.row(running);
  return reshape(row + (batch - row) * momentum, running.shape());
}

// The result, the mean and the reciprocal deviation; of statistics that training keeps, the new
// ones.
constexpr auto normalizeBatch = [](In input, In weight, In bias, In runningMean, In runningVar,
                                   In momentum, In epsilon, const std::vector<int>& axes,
                                   bool train) {
  const FeatureAxes features(input, axes);
  const Tensor x = features.view(input);
  Tensor mean, variance;
  std::vector<Tensor> statistics;
  if (train) {
    const auto count = static_cast<double>(features.count());
    mean = sumOverBatch(x) / count;
    const Tensor centered = x - mean;
    const Tensor squares = sumOverBatch(centered * centered);
    variance = squares / count;
    if (!runningMean.isEmpty()) {
      statistics = {
          updatedRunning(runningMean, mean, features, momentum),
          updatedRunning(runningVar, squares / std::max(count - 1, 1.0), features, momentum)};
    }
  } else {
    mean = features.row(runningMean);
    variance = features.row(runningVar);
  }
  const Tensor inverse = 1.0 / sqrt(variance + epsilon);
  const Tensor scale = weight.isEmpty() ? inverse : inverse * features.row(weight);
  Tensor result = (x - mean) * scale;
  if (!bias.isEmpty()) result = result + features.row(bias);
  std::vector<Tensor> results = {reshape(result, input.shape()).astype(input.type()),
                                 mean.flatten(), inverse.flatten()};
  results.insert(results.end(), statistics.begin(), statistics.end());
  return results;
};

// The gradients of the input, the weight and the bias.
constexpr auto batchGradients = [](In gradOutput, In saveMean, In saveVar, In input, In weight,
                                   const std::vector<int>& axes, bool train) {
  const FeatureAxes features(input, axes);
  const Tensor mean = features.row(saveMean), inverse = features.row(saveVar);
  const Tensor x = features.view(input), grad = features.view(gradOutput);
  const Tensor centered = x - mean;
  const Tensor gradBias = sumOverBatch(grad);
  const Tensor gradWeight = sumOverBatch(grad * centered) * inverse;

  Tensor gradInput = grad;
  if (train) {  // mean and variance follow the input too
    const auto count = static_cast<double>(features.count());
    const Tensor slope = gradWeight * inverse / count;
    gradInput = grad - gradBias / count - centered * slope;
  }
  gradInput = gradInput * inverse;
  if (!weight.isEmpty()) gradInput = gradInput * features.row(weight);
  return std::vector<Tensor>{reshape(gradInput, input.shape()).astype(input.type()),
                             gradWeight.flatten(), gradBias.flatten()};
};

}  // namespace

Tensor ComposedAutogradExtension::batchnorm(Tensor& saveMean, Tensor& saveVar, const Tensor& input,
                                            const Tensor& weight, const Tensor& bias,
                                            Tensor& runningMean, Tensor& runningVar,
                                            const std::vector<int>& axes, const bool train,
                                            const double momentum, const double epsilon,
                                            std::shared_ptr<detail::AutogradPayload>) {
  const FeatureAxes features(input, axes);
  checkParameter("weight", weight, input, features);
  checkParameter("bias", bias, input, features);
  checkParameter("running mean", runningMean, input, features);
  checkParameter("running variance", runningVar, input, features);
  const bool keepsStatistics = !runningMean.isEmpty();
  FL_USER_CHECK(runningVar.isEmpty() != keepsStatistics,
                "batchnorm: running mean and variance must be both empty or neither");
  FL_USER_CHECK(train || keepsStatistics,
                describeCall("batchnorm", typeToString(input.type(), input.shape())),
                ": needs running statistics where it does not train");

  const dtype type = computeType(input.type());
  std::vector<Tensor> results =
      composite("batchnorm", normalizeBatch, input, weight, bias, runningMean, runningVar,
                fromScalar(momentum, type), fromScalar(epsilon, type), axes, train);
  saveMean = results[1];
  saveVar = results[2];
  if (train && keepsStatistics && !input.isEmpty()) {
    detail::setState(runningMean, results[3]);
    detail::setState(runningVar, results[4]);
  }
  return results[0];
}

std::tuple<Tensor, Tensor, Tensor> ComposedAutogradExtension::batchnormBackward(
    const Tensor& gradOutput, const Tensor& saveMean, const Tensor& saveVar, const Tensor& input,
    const Tensor& weight, const std::vector<int>& axes, const bool train, const float,
    std::shared_ptr<detail::AutogradPayload>) {
  FL_USER_CHECK(gradOutput.shape() == input.shape(), "batchnormBackward: a gradient ",
                typeToString(gradOutput.type(), gradOutput.shape()), " of a result of shape ",
                input.shape());
  const FeatureAxes features(input, axes);
  checkCount("saved mean", saveMean, input, features);
  checkCount("saved variance", saveVar, input, features);
  if (!weight.isEmpty()) checkCount("weight", weight, input, features);
  const auto grads = composite("batchnormBackward", batchGradients, gradOutput, saveMean, saveVar,
                               input, weight, axes, train);
  return {grads[0], grads[1], grads[2]};
}

}  // namespace fl
