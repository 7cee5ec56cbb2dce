#include "fl/nn/modules/BatchNorm.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::BatchNorm)

namespace fl {

BatchNorm::BatchNorm(int featAxis, int featSize, double momentum, double eps, bool affine,
                     bool trackStats)
    : BatchNorm(std::vector<int>{featAxis}, featSize, momentum, eps, affine, trackStats) {}

BatchNorm::BatchNorm(const std::vector<int>& featAxis, int featSize, double momentum, double eps,
                     bool affine, bool trackStats)
    : featAxis_(featAxis),
      featSize_(featSize),
      momentum_(momentum),
      epsilon_(eps),
      affine_(affine),
      trackStats_(trackStats) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(featSize > 0, "BatchNorm: the number of features must be positive, not ", featSize);
  initialize();
}

void BatchNorm::initialize() {
  if (trackStats_) {
    runningMean_ = constant(0.0, Shape({featSize_}), dtype::f32, false);
    runningVar_ = constant(1.0, Shape({featSize_}), dtype::f32, false);
  }
  if (affine_) {
    params_ = {uniform(Shape({featSize_})), constant(0.0, Shape({featSize_}))};
  }
}

BatchNorm::BatchNorm(const BatchNorm& other)
    : CloneableUnaryModule<BatchNorm>(other),
      featAxis_(other.featAxis_),
      featSize_(other.featSize_),
      numBatchesTracked_(other.numBatchesTracked_),
      runningMean_(other.runningMean_.copy()),
      runningVar_(other.runningVar_.copy()),
      momentum_(other.momentum_),
      epsilon_(other.epsilon_),
      affine_(other.affine_),
      trackStats_(other.trackStats_) {}

BatchNorm& BatchNorm::operator=(const BatchNorm& other) { return *this = BatchNorm(other); }

Variable BatchNorm::forward(const Variable& input) {
  FL_API_ENTRY();
  const dtype type = computeType(input.type());
  const bool updates = train_ && trackStats_ && !input.isEmpty();
  numBatchesTracked_ += updates;
  const double factor = updates && momentum_ < 0 ? 1.0 / numBatchesTracked_ : momentum_;
  const auto parameter = [&](int i) {
    return affine_ ? detail::toType(params_[i], type) : Variable(Tensor(type), false);
  };
  Variable mean = runningMean_.astype(type), variance = runningVar_.astype(type);
  Variable result = batchnorm(input, parameter(0), parameter(1), mean, variance, featAxis_,
                              train_ || !trackStats_, factor, epsilon_);
  if (updates) {
    detail::setState(runningMean_.tensor(), mean.tensor().astype(dtype::f32));
    detail::setState(runningVar_.tensor(), variance.tensor().astype(dtype::f32));
  }
  return result;
}

std::string BatchNorm::prettyString() const {
  return detail::concat("BatchNorm ( axis : ", detail::axesToString(featAxis_),
                        ", size : ", featSize_, " )");
}

}  // namespace fl
