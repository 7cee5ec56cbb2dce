// Batch normalisation over (before, features, after): the feature axes merged into one, and what
// precedes and follows them, which is averaged over. 16-bit floats are computed in f32.
//
// The centered input is an operand of the reductions alone: the elements' last formula multiplies x
// and subtracts the mean's share, so that no tensor of the input's size is stored on the way. The
// rounding error is still that of the mean.
#include <algorithm>

#include "fl/autograd/tensor/ComposedAutogradExtension.h"
#include "fl/base/Error.h"

namespace fl {
namespace {

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
  Dim count() const { return before * after; }

  Dim before = 1, features = 1, after = 1;
};

void checkParameter(const char* name, const Tensor& parameter, const Tensor& input,
                    const FeatureAxes& axes) {
  if (parameter.isEmpty()) {
    return;
  }
  const dtype type = computeType(input.type());
  FL_USER_CHECK(parameter.shape().elements() == axes.features && parameter.type() == type,
                "batchnorm: ", typeToString(input.type(), input.shape()), " with ", name, " ",
                typeToString(parameter.type(), parameter.shape()), ": needs ", axes.features,
                " elements of ", type);
}

Tensor sumOverBatch(const Tensor& view) { return sum(view, {0, 2}, /*keepDims=*/true); }

// running + momentum (batch - running), in the shape of `running`. Every operator of it reads the
// batch's value, so that all fuse with the reduction.
void updateRunning(Tensor& running, const Tensor& batch, const FeatureAxes& features,
                   double momentum) {
  const Tensor row = features.row(running);
  running = reshape(row + (batch - row) * momentum, running.shape());
}

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
                "batchnorm: needs running statistics where it does not train");

  const Tensor x = features.view(input);
  Tensor mean, variance;
  if (train) {
    const auto count = static_cast<double>(features.count());
    mean = sumOverBatch(x) / count;
    const Tensor centered = x - mean;
    const Tensor squares = sumOverBatch(centered * centered);
    variance = squares / count;
    if (keepsStatistics) {
      updateRunning(runningMean, mean, features, momentum);
      updateRunning(runningVar, squares / std::max(count - 1, 1.0), features, momentum);
    }
  } else {
    mean = features.row(runningMean);
    variance = features.row(runningVar);
  }
  const Tensor inverse = 1.0 / sqrt(variance + epsilon);
  saveMean = mean.flatten();
  saveVar = inverse.flatten();

  const Tensor scale = weight.isEmpty() ? inverse : inverse * features.row(weight);
  const Tensor shift = bias.isEmpty() ? -(mean * scale) : features.row(bias) - mean * scale;
  return reshape(x * scale + shift, input.shape()).astype(input.type());
}

std::tuple<Tensor, Tensor, Tensor> ComposedAutogradExtension::batchnormBackward(
    const Tensor& gradOutput, const Tensor& saveMean, const Tensor& saveVar, const Tensor& input,
    const Tensor& weight, const std::vector<int>& axes, const bool train, const float,
    std::shared_ptr<detail::AutogradPayload>) {
  const FeatureAxes features(input, axes);
  FL_USER_CHECK(gradOutput.shape() == input.shape(), "batchnormBackward: a gradient ",
                typeToString(gradOutput.type(), gradOutput.shape()), " of a result of shape ",
                input.shape());
  const Tensor mean = features.row(saveMean), inverse = features.row(saveVar);
  const Tensor x = features.view(input), grad = features.view(gradOutput);
  const Tensor gradBias = sumOverBatch(grad);
  const Tensor gradWeight = sumOverBatch(grad * (x - mean)) * inverse;

  Tensor gradInput = grad;
  if (train) {  // mean and variance follow the input too
    const auto count = static_cast<double>(features.count());
    const Tensor slope = gradWeight * inverse / count;
    gradInput = grad - gradBias / count - (x * slope - mean * slope);
  }
  gradInput = gradInput * inverse;
  if (!weight.isEmpty()) {
    gradInput = gradInput * features.row(weight);
  }
  return {reshape(gradInput, input.shape()).astype(input.type()), gradWeight.flatten(),
          gradBias.flatten()};
}

}  // namespace fl
