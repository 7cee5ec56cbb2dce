// Activation functions as modules.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

// 1 / (1 + exp(-x))
// Shapes: any, kept
class Sigmoid : public CloneableUnaryModule<Sigmoid> {
  FL_UNARY_MODULE()
};

// The natural logarithm.
// Shapes: any, kept
class Log : public CloneableUnaryModule<Log> {
  FL_UNARY_MODULE()
};

// The hyperbolic tangent.
// Shapes: any, kept
class Tanh : public CloneableUnaryModule<Tanh> {
  FL_UNARY_MODULE()
};

// x limited to [-1, 1].
// Shapes: any, kept
class HardTanh : public CloneableUnaryModule<HardTanh> {
  FL_UNARY_MODULE()
};

// max(x, 0)
// Shapes: any, kept
class ReLU : public CloneableUnaryModule<ReLU> {
  FL_UNARY_MODULE()
};

// x limited to [0, 6].
// Shapes: any, kept
class ReLU6 : public CloneableUnaryModule<ReLU6> {
  FL_UNARY_MODULE()
};

// max(x, slope x)
// Shapes: any, kept
class LeakyReLU : public CloneableUnaryModule<LeakyReLU> {
 public:
  /* implicit */ LeakyReLU(double slope = 0.0) : mSlope_(slope) {}
  FL_UNARY_MODULE(mSlope_)

  double mSlope_;
};

// max(x, 0) + w min(x, 0). The parameter w is (size, 1), one slope for each index of the first
// dimension or one for all, or any shape that broadcasts to the input's.
// Shapes: (size, ...), kept
class PReLU : public CloneableUnaryModule<PReLU> {
 public:
  explicit PReLU(int size = 1, double value = 0.25);
  explicit PReLU(const Variable& w) : CloneableUnaryModule<PReLU>({w}) {}
  FL_UNARY_MODULE()
};

// x where x >= 0, else alpha (exp(x) - 1).
// Shapes: any, kept
class ELU : public CloneableUnaryModule<ELU> {
 public:
  /* implicit */ ELU(double alpha = 1.0) : mAlpha_(alpha) {}
  FL_UNARY_MODULE(mAlpha_)

  double mAlpha_;
};

// x where x >= threshold, else 0.
// Shapes: any, kept
class ThresholdReLU : public CloneableUnaryModule<ThresholdReLU> {
 public:
  /* implicit */ ThresholdReLU(double threshold = 1.0) : mThreshold_(threshold) {}
  FL_UNARY_MODULE(mThreshold_)

  double mThreshold_;
};

// The first half of dimension `dim` times the sigmoid of the second.
// Shapes: any, half as large in dimension `dim`
class GatedLinearUnit : public CloneableUnaryModule<GatedLinearUnit> {
 public:
  /* implicit */ GatedLinearUnit(int dim = 0) : dim_(dim) {}
  FL_UNARY_MODULE(dim_)

  int dim_;
};

// log(softmax(x)) along dimension `dim`.
// Shapes: any, kept
class LogSoftmax : public CloneableUnaryModule<LogSoftmax> {
 public:
  /* implicit */ LogSoftmax(int dim = 0) : dim_(dim) {}
  FL_UNARY_MODULE(dim_)

  int dim_;
};

// exp(x) / sum(exp(x)) along dimension `dim`.
// Shapes: any, kept
class Softmax : public CloneableUnaryModule<Softmax> {
 public:
  /* implicit */ Softmax(int dim = 0) : dim_(dim) {}
  FL_UNARY_MODULE(dim_)

  int dim_;
};

// x sigmoid(beta x)
// Shapes: any, kept
class Swish : public CloneableUnaryModule<Swish> {
 public:
  /* implicit */ Swish(double beta = 1.0) : beta_(beta) {}
  FL_UNARY_MODULE(beta_)

  double beta_;
};

// x times the probability of a normal number below x, by its tanh approximation (fl::gelu).
// Shapes: any, kept
class GELU : public CloneableUnaryModule<GELU> {
  FL_UNARY_MODULE()
};

}  // namespace fl
