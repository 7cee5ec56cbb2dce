// Variables from tensors, constants and random draws: what parameters start from.
//
// Random ones take draws of fl::rand or fl::randn at the call (see fl::setSeed). Shapes given as
// (outputSize, inputSize) are that 2-D shape. fanIn and fanOut are the numbers of inputs of an
// output and of outputs of an input; they must be positive.
//
// Kaiming: He et al., "Delving Deep into Rectifiers", 2015, with gain 1. Glorot: Glorot and Bengio,
// "Understanding the difficulty of training deep feedforward neural networks", 2010. erfinv begins
// with S. Winitzki's approximation (2008) and takes Halley's steps.
#pragma once

#include "fl/autograd/Variable.h"

namespace fl {
namespace detail {

// Uniform in [min, max].
Tensor uniform(const Shape& shape, double min = 0, double max = 1, dtype type = dtype::f32);
// Normal of mean `mean` and standard deviation `stdv`.
Tensor normal(const Shape& shape, double stdv = 1, double mean = 0, dtype type = dtype::f32);
// Standard deviation sqrt(1 / fanIn); uniform ones are within sqrt(3) of it.
Tensor kaimingUniform(const Shape& shape, int fanIn, dtype type = dtype::f32);
Tensor kaimingNormal(const Shape& shape, int fanIn, dtype type = dtype::f32);
// Standard deviation sqrt(2 / (fanIn + fanOut)).
Tensor glorotUniform(const Shape& shape, int fanIn, int fanOut, dtype type = dtype::f32);
Tensor glorotNormal(const Shape& shape, int fanIn, int fanOut, dtype type = dtype::f32);
// The number whose erf is the element: +-inf for +-1, NaN beyond. Its erf is within a few
// ulps of the element.
Tensor erfinv(const Tensor& y);

}  // namespace detail

// Variables around a tensor: input and noGrad want no gradient, param does.
Variable input(const Tensor& arr);
Variable noGrad(const Tensor& arr);
Variable param(const Tensor& arr);

Variable constant(double val, int outputSize, int inputSize, dtype type = dtype::f32,
                  bool calcGrad = true);
Variable constant(double val, const Shape& shape, dtype type = dtype::f32, bool calcGrad = true);
template <typename T>
Variable scalar(T val, dtype type = dtype_traits<T>::ctype, bool calcGrad = true) {
  return Variable(fromScalar(val, type), calcGrad);
}
// Throws std::invalid_argument unless the shape is square and 2-D.
Variable identity(int outputSize, int inputSize, dtype type = dtype::f32, bool calcGrad = true);
Variable identity(const Shape& shape, dtype type = dtype::f32, bool calcGrad = true);

Variable uniform(int outputSize, int inputSize, double min = 0, double max = 1,
                 dtype type = dtype::f32, bool calcGrad = true);
Variable uniform(const Shape& shape, double min = 0, double max = 1, dtype type = dtype::f32,
                 bool calcGrad = true);
Variable normal(int outputSize, int inputSize, double stdv = 1, double mean = 0,
                dtype type = dtype::f32, bool calcGrad = true);
Variable normal(const Shape& shape, double stdv = 1, double mean = 0, dtype type = dtype::f32,
                bool calcGrad = true);
Variable kaimingUniform(const Shape& shape, int fanIn, dtype type = dtype::f32,
                        bool calcGrad = true);
Variable kaimingNormal(const Shape& shape, int fanIn, dtype type = dtype::f32,
                       bool calcGrad = true);
Variable glorotUniform(const Shape& shape, int fanIn, int fanOut, dtype type = dtype::f32,
                       bool calcGrad = true);
Variable glorotNormal(const Shape& shape, int fanIn, int fanOut, dtype type = dtype::f32,
                      bool calcGrad = true);
// Normal numbers as they fall between the cut-offs, by inversion of their distribution. Throws
// std::invalid_argument unless stdv > 0 and minCutOff < maxCutOff.
Variable truncNormal(const Shape& shape, double stdv = 1, double mean = 0, double minCutOff = -2,
                     double maxCutOff = 2, dtype type = dtype::f32, bool calcGrad = true);

}  // namespace fl
