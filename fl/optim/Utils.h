// What training loops do with gradients between backward() and step().
#pragma once

#include <utility>
#include <vector>

#include "fl/autograd/Variable.h"

namespace fl {

namespace detail {

// Those that have a gradient, each gradient once: one that two modules share may be listed twice.
std::vector<Variable> withGradients(const std::vector<Variable>& parameters);

}  // namespace detail

// A scalar that is recorded like any tensor and read where the program uses it as a number: `double
// norm = clipGradNorm(...)` waits for the gradients, a call whose result is not used does not.
template <typename T>
class RecordedScalar {
 public:
  explicit RecordedScalar(Tensor scalar) : tensor_(std::move(scalar)) {}
  operator T() const { return tensor_.asScalar<T>(); }
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

// Scales the gradients by min(1, maxNorm / (norm + 1e-6)), where `norm` is the Euclidean norm of
// all of them together, which is returned. Parameters without a gradient are passed over, and those
// listed again. Squares are added in f32 where gradients are narrower. Pascanu et al., "On the
// difficulty of training recurrent neural networks", 2013.
RecordedScalar<double> clipGradNorm(const std::vector<Variable>& parameters, double maxNorm);

}  // namespace fl
