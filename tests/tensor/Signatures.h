// The tensor API's functions with Flashlight's exact types: a program that takes their addresses,
// or overloads beside them, compiles here as it does there. Nothing runs.
#pragma once

#include <type_traits>

#include "fl/autograd/tensor/AutogradOps.h"
#include "fl/tensor/tensor.h"

namespace fl::testing {

using Axes = const std::vector<int>&;
using T = const Tensor&;

// The address of the function of exactly this type.
#define FL_SIGNATURE(name, ...) \
  static_assert(                \
      std::is_function_v<std::remove_pointer_t<decltype(static_cast<__VA_ARGS__>(&name))>>)

// ---- Creation and random ----
#define FL_OF_NUMBERS(N)                                              \
  FL_SIGNATURE(fl::fromScalar<N>, Tensor (*)(const N&, const dtype)); \
  FL_SIGNATURE(fl::full<N>, Tensor (*)(const Shape&, const N&, const dtype));
FL_FOR_EACH_SCALAR_TYPE(FL_OF_NUMBERS)
#undef FL_OF_NUMBERS
#define FL_OF_STEPS(N) \
  FL_SIGNATURE(fl::arange<N>, Tensor (*)(const N&, const N&, const N&, const dtype));
FL_OF_STEPS(double)
FL_OF_STEPS(float)
FL_OF_STEPS(int)
FL_OF_STEPS(unsigned)
FL_OF_STEPS(long)
FL_OF_STEPS(unsigned long)
FL_OF_STEPS(long long)
FL_OF_STEPS(unsigned long long)
#undef FL_OF_STEPS
FL_SIGNATURE(fl::identity, Tensor (*)(const Dim, const dtype));
FL_SIGNATURE(fl::arange, Tensor (*)(const Shape&, const Dim, const dtype));
FL_SIGNATURE(fl::iota, Tensor (*)(const Shape&, const Shape&, const dtype));
FL_SIGNATURE(fl::setSeed, void (*)(const int));
FL_SIGNATURE(fl::randn, Tensor (*)(const Shape&, dtype));
FL_SIGNATURE(fl::rand, Tensor (*)(const Shape&, dtype));

// ---- Shape ----
FL_SIGNATURE(fl::reshape, Tensor (*)(T, const Shape&));
FL_SIGNATURE(fl::transpose, Tensor (*)(T, const Shape&));
FL_SIGNATURE(fl::tile, Tensor (*)(T, const Shape&));
FL_SIGNATURE(fl::concatenate, Tensor (*)(const std::vector<Tensor>&, const unsigned));
FL_SIGNATURE(fl::nonzero, Tensor (*)(T));
FL_SIGNATURE(fl::pad, Tensor (*)(T, const std::vector<std::pair<int, int>>&, const PadType));

// ---- Unary and selection ----
#define FL_UNARY(name) FL_SIGNATURE(fl::name, Tensor (*)(T));
FL_UNARY(exp)
FL_UNARY(log)
FL_UNARY(negative)
FL_UNARY(logicalNot)
FL_UNARY(log1p)
FL_UNARY(sin)
FL_UNARY(cos)
FL_UNARY(sqrt)
FL_UNARY(tanh)
FL_UNARY(floor)
FL_UNARY(ceil)
FL_UNARY(rint)
FL_UNARY(absolute)
FL_UNARY(abs)
FL_UNARY(sigmoid)
FL_UNARY(erf)
FL_UNARY(isnan)
FL_UNARY(isinf)
FL_UNARY(sign)
FL_UNARY(tril)
FL_UNARY(triu)
FL_UNARY(operator!)
FL_UNARY(operator-)
#undef FL_UNARY
FL_SIGNATURE(fl::flip, Tensor (*)(T, const unsigned));
FL_SIGNATURE(fl::roll, Tensor (*)(T, const int, const unsigned));
FL_SIGNATURE(fl::clip, Tensor (*)(T, T, T));
FL_SIGNATURE(fl::clip, Tensor (*)(T, T, const double&));
FL_SIGNATURE(fl::clip, Tensor (*)(T, const double&, T));
FL_SIGNATURE(fl::clip, Tensor (*)(T, const double&, const double&));
FL_SIGNATURE(fl::where, Tensor (*)(T, T, T));
FL_SIGNATURE(fl::where, Tensor (*)(T, T, const double&));
FL_SIGNATURE(fl::where, Tensor (*)(T, const double&, T));

// ---- Order ----
FL_SIGNATURE(fl::topk, void (*)(Tensor&, Tensor&, T, const unsigned, const Dim, const SortMode));
FL_SIGNATURE(fl::sort, Tensor (*)(T, const Dim, const SortMode));
FL_SIGNATURE(fl::sort, void (*)(Tensor&, Tensor&, T, const Dim, const SortMode));
FL_SIGNATURE(fl::argsort, Tensor (*)(T, const Dim, const SortMode));

// ---- Binary: the function and its operator in 27 forms each ----
#define FL_WITH_NUMBER(name, N)                \
  FL_SIGNATURE(name, Tensor (*)(T, const N&)); \
  FL_SIGNATURE(name, Tensor (*)(const N&, T));
#define FL_FORMS(name)                     \
  FL_SIGNATURE(name, Tensor (*)(T, T));    \
  FL_WITH_NUMBER(name, bool)               \
  FL_WITH_NUMBER(name, int)                \
  FL_WITH_NUMBER(name, unsigned)           \
  FL_WITH_NUMBER(name, char)               \
  FL_WITH_NUMBER(name, unsigned char)      \
  FL_WITH_NUMBER(name, long)               \
  FL_WITH_NUMBER(name, unsigned long)      \
  FL_WITH_NUMBER(name, long long)          \
  FL_WITH_NUMBER(name, unsigned long long) \
  FL_WITH_NUMBER(name, double)             \
  FL_WITH_NUMBER(name, float)              \
  FL_WITH_NUMBER(name, short)              \
  FL_WITH_NUMBER(name, unsigned short)
#define FL_BINARY(name, op) FL_FORMS(fl::name) FL_FORMS(fl::operator op)
FL_FOR_EACH_BINARY_OPERATOR(FL_BINARY)
#undef FL_BINARY
#undef FL_FORMS
#undef FL_WITH_NUMBER
#define FL_EXTREME(name)                                \
  FL_SIGNATURE(fl::name, Tensor (*)(T, T));             \
  FL_SIGNATURE(fl::name, Tensor (*)(T, const double&)); \
  FL_SIGNATURE(fl::name, Tensor (*)(const double&, T));
FL_EXTREME(minimum)
FL_EXTREME(maximum)
FL_EXTREME(power)
#undef FL_EXTREME
FL_SIGNATURE(fl::matmul, Tensor (*)(T, T, MatrixProperty, MatrixProperty));

// ---- Reductions ----
#define FL_REDUCTION(name) FL_SIGNATURE(fl::name, Tensor (*)(T, Axes, const bool));
FL_REDUCTION(amin)
FL_REDUCTION(amax)
FL_REDUCTION(sum)
FL_REDUCTION(mean)
FL_REDUCTION(median)
FL_REDUCTION(std)
FL_REDUCTION(countNonzero)
FL_REDUCTION(any)
FL_REDUCTION(all)
#undef FL_REDUCTION
FL_SIGNATURE(fl::var, Tensor (*)(T, Axes, const bool, const bool));
FL_SIGNATURE(fl::norm, Tensor (*)(T, Axes, double, const bool));
FL_SIGNATURE(fl::cumsum, Tensor (*)(T, const unsigned));
FL_SIGNATURE(fl::argmax, Tensor (*)(T, const unsigned, const bool));
FL_SIGNATURE(fl::argmin, Tensor (*)(T, const unsigned, const bool));
FL_SIGNATURE(fl::min, void (*)(Tensor&, Tensor&, T, const unsigned, const bool));
FL_SIGNATURE(fl::max, void (*)(Tensor&, Tensor&, T, const unsigned, const bool));

// ---- Computation, devices, utilities ----
FL_SIGNATURE(fl::sync, void (*)());
FL_SIGNATURE(fl::sync, void (*)(const int));
FL_SIGNATURE(fl::sync, void (*)(const std::unordered_set<DeviceType>&));
FL_SIGNATURE(fl::sync, void (*)(const std::unordered_set<const Device*>&));
FL_SIGNATURE(fl::relativeSync, void (*)(const Stream&, const std::vector<const Tensor*>&));
FL_SIGNATURE(fl::relativeSync, void (*)(const Stream&, const std::vector<Tensor>&));
FL_SIGNATURE(fl::relativeSync, void (*)(const std::vector<Tensor>&, const Stream&));
FL_SIGNATURE(fl::eval, void (*)(Tensor&));
FL_SIGNATURE(fl::getDevice, int (*)());
FL_SIGNATURE(fl::setDevice, void (*)(const int));
FL_SIGNATURE(fl::getDeviceCount, int (*)());
FL_SIGNATURE(fl::detail::getMemMgrInfo, void (*)(const char*, const int, std::ostream*));
FL_SIGNATURE(fl::detail::setMemMgrLogStream, void (*)(std::ostream*));
FL_SIGNATURE(fl::detail::setMemMgrLoggingEnabled, void (*)(const bool));
FL_SIGNATURE(fl::detail::setMemMgrFlushInterval, void (*)(const size_t));
FL_SIGNATURE(fl::init, void (*)());
FL_SIGNATURE(fl::allClose, bool (*)(T, T, const double));
FL_SIGNATURE(fl::isInvalidArray, bool (*)(T));
FL_SIGNATURE(fl::print, void (*)(T));
FL_SIGNATURE(fl::operator<<, std::ostream& (*)(std::ostream&, T));
FL_SIGNATURE(fl::tensorBackendTypeToString, std::string (*)(const TensorBackendType));
FL_SIGNATURE(fl::getTypeSize, size_t (*)(dtype));
FL_SIGNATURE(fl::dtypeToString, const std::string& (*)(dtype));
FL_SIGNATURE(fl::stringToDtype, dtype (*)(const std::string&));

// ---- Neural networks ----
FL_SIGNATURE(fl::conv2d, Tensor (*)(T, T, const int, const int, const int, const int, const int,
                                    const int, const int));
FL_SIGNATURE(fl::conv2d, Tensor (*)(T, T, T, const int, const int, const int, const int, const int,
                                    const int, const int));
FL_SIGNATURE(fl::pool2d, Tensor (*)(T, const int, const int, const int, const int, const int,
                                    const int, const PoolingMode));
FL_SIGNATURE(fl::batchnorm,
             Tensor (*)(T, T, T, Tensor&, Tensor&, Axes, const bool, const double, const double));
FL_SIGNATURE(fl::batchnorm, Tensor (*)(Tensor&, Tensor&, T, T, T, Tensor&, Tensor&, Axes,
                                       const bool, const double, const double));
FL_SIGNATURE(fl::rnn,
             std::tuple<Tensor, Tensor, Tensor> (*)(T, T, T, T, const int, const int, const RnnMode,
                                                    const bool, const float));
using Payload = std::shared_ptr<detail::AutogradPayload>;
using Benchmark = std::shared_ptr<DynamicBenchmark>;
FL_SIGNATURE(fl::detail::conv2d, Tensor (*)(T, T, T, const int, const int, const int, const int,
                                            const int, const int, const int, Payload));
FL_SIGNATURE(fl::detail::pool2d, Tensor (*)(T, const int, const int, const int, const int,
                                            const int, const int, const PoolingMode, Payload));
FL_SIGNATURE(fl::detail::batchnorm, Tensor (*)(Tensor&, Tensor&, T, T, T, Tensor&, Tensor&, Axes,
                                               const bool, const double, const double, Payload));
FL_SIGNATURE(fl::detail::rnn,
             std::tuple<Tensor, Tensor, Tensor> (*)(T, T, T, T, const int, const int, const RnnMode,
                                                    const bool, const float, Payload));
FL_SIGNATURE(fl::detail::conv2dBackwardData,
             Tensor (*)(T, T, T, const int, const int, const int, const int, const int, const int,
                        const int, Benchmark, Payload));
FL_SIGNATURE(fl::detail::conv2dBackwardFilterBias,
             std::pair<Tensor, Tensor> (*)(T, T, T, T, const int, const int, const int, const int,
                                           const int, const int, const int, Benchmark, Benchmark,
                                           Payload));
FL_SIGNATURE(fl::detail::pool2dBackward,
             Tensor (*)(T, T, T, const int, const int, const int, const int, const int, const int,
                        const PoolingMode, Payload));
FL_SIGNATURE(fl::detail::batchnormBackward,
             std::tuple<Tensor, Tensor, Tensor> (*)(T, T, T, T, T, Axes, const bool, const float,
                                                    Payload));
FL_SIGNATURE(fl::detail::rnnBackward,
             std::tuple<Tensor, Tensor, Tensor, Tensor> (*)(
                 T, T, T, T, const std::shared_ptr<detail::RNNGradData>, T, const int, const int,
                 const RnnMode, const bool, const float, Payload));

#undef FL_SIGNATURE

}  // namespace fl::testing
