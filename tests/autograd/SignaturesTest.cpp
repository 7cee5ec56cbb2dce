// Variable and its functions with Flashlight's exact types and default arguments: a program that
// takes their addresses, overloads beside them or leaves arguments out compiles here as it does
// there. Nothing runs. Compared with Flashlight's Variable.h, Functions.h, Utils.h and Defines.h.
#include <type_traits>

#include "fl/autograd/autograd.h"
#include "tests/ExactTypes.h"

namespace fl::test {
namespace {

using V = const Variable&;
using Axes = const std::vector<int>&;
using std::declval;
using std::is_same_v;

// ---- Variable ----
static_assert(is_same_v<Variable::GradFunc, std::function<void(std::vector<Variable>&, V)>>);
static_assert(is_same_v<Variable::GradHook, std::function<void(Variable&)>>);
static_assert(std::is_default_constructible_v<Variable> && std::is_copy_constructible_v<Variable>);
static_assert(std::is_constructible_v<Variable, Tensor, bool> &&
              !std::is_convertible_v<Tensor, Variable>);
static_assert(std::is_constructible_v<Variable, Tensor, std::vector<Variable>, Variable::GradFunc>);
FL_METHOD(Variable::operator(), Variable (Variable::*)(const std::vector<Index>&) const);
FL_CALL(declval<V>()(0, span, range(1), declval<Tensor>()), Variable);
FL_METHOD(Variable::flat, Variable (Variable::*)(const Index&) const);
FL_METHOD(Variable::tensor, Tensor& (Variable::*)() const);
FL_METHOD(Variable::copy, Variable (Variable::*)() const);
FL_METHOD(Variable::astype, Variable (Variable::*)(dtype) const);
FL_METHOD(Variable::grad, Variable& (Variable::*)() const);
FL_METHOD(Variable::isCalcGrad, bool (Variable::*)() const);
FL_METHOD(Variable::isGradAvailable, bool (Variable::*)() const);
FL_METHOD(Variable::shape, Shape (Variable::*)() const);
FL_METHOD(Variable::isEmpty, bool (Variable::*)() const);
FL_METHOD(Variable::isContiguous, bool (Variable::*)() const);
FL_METHOD(Variable::asContiguous, Variable (Variable::*)() const);
FL_METHOD(Variable::type, dtype (Variable::*)() const);
FL_METHOD(Variable::elements, Dim (Variable::*)() const);
FL_METHOD(Variable::bytes, size_t (Variable::*)() const);
FL_METHOD(Variable::ndim, unsigned (Variable::*)() const);
FL_METHOD(Variable::dim, Dim (Variable::*)(unsigned) const);
FL_METHOD(Variable::eval, void (Variable::*)() const);
FL_METHOD(Variable::host<float>, float* (Variable::*)() const);
FL_METHOD(Variable::host<float>, void (Variable::*)(float*) const);
FL_METHOD(Variable::scalar<float>, float (Variable::*)() const);
FL_METHOD(Variable::zeroGrad, void (Variable::*)());
FL_METHOD(Variable::setCalcGrad, void (Variable::*)(bool));
FL_METHOD(Variable::addGrad, void (Variable::*)(V));
FL_METHOD(Variable::registerGradHook, void (Variable::*)(const Variable::GradHook&));
FL_METHOD(Variable::clearGradHook, void (Variable::*)());
FL_METHOD(Variable::backward, void (Variable::*)(V, bool));
FL_METHOD(Variable::backward, void (Variable::*)(bool));
FL_CALL(declval<Variable&>().backward(declval<V>()), void);
FL_CALL(declval<Variable&>().backward(), void);
FL_METHOD(Variable::withoutData, Variable (Variable::*)() const);

// ---- Operators ----
#define FL_OF_VARIABLES_AND_NUMBERS(name)             \
  FL_SIGNATURE(name, Variable (*)(V, V));             \
  FL_SIGNATURE(name, Variable (*)(const double&, V)); \
  FL_SIGNATURE(name, Variable (*)(V, const double&))
FL_OF_VARIABLES_AND_NUMBERS(fl::operator+);
FL_OF_VARIABLES_AND_NUMBERS(fl::operator-);
FL_OF_VARIABLES_AND_NUMBERS(fl::operator*);
FL_OF_VARIABLES_AND_NUMBERS(fl::operator/);
FL_OF_VARIABLES_AND_NUMBERS(fl::operator>);
FL_OF_VARIABLES_AND_NUMBERS(fl::operator<);
FL_OF_VARIABLES_AND_NUMBERS(fl::operator>=);
FL_OF_VARIABLES_AND_NUMBERS(fl::operator<=);
FL_OF_VARIABLES_AND_NUMBERS(fl::max);
FL_OF_VARIABLES_AND_NUMBERS(fl::min);
FL_SIGNATURE(fl::operator&&, Variable (*)(V, V));
FL_SIGNATURE(fl::operator!, Variable (*)(V));

// ---- Elementwise ----
#define FL_OF_ONE(name) FL_SIGNATURE(name, Variable (*)(V))
FL_OF_ONE(fl::negate);
FL_OF_ONE(fl::reciprocal);
FL_OF_ONE(fl::exp);
FL_OF_ONE(fl::log);
FL_OF_ONE(fl::log1p);
FL_OF_ONE(fl::sin);
FL_OF_ONE(fl::cos);
FL_OF_ONE(fl::sqrt);
FL_OF_ONE(fl::tanh);
FL_OF_ONE(fl::sigmoid);
FL_OF_ONE(fl::erf);
FL_OF_ONE(fl::abs);
FL_OF_ONE(fl::relu);
FL_OF_ONE(fl::gelu);
FL_OF_ONE(fl::exactGelu);
FL_SIGNATURE(fl::pow, Variable (*)(V, double));
FL_SIGNATURE(fl::clamp, Variable (*)(V, const double, const double));
FL_SIGNATURE(fl::swish, Variable (*)(V, double));

// ---- Shape ----
FL_SIGNATURE(fl::transpose, Variable (*)(V, const Shape&));
FL_CALL(transpose(declval<V>()), Variable);
FL_SIGNATURE(fl::reorder, Variable (*)(V, const Shape&));
FL_SIGNATURE(fl::tileAs, Variable (*)(V, V));
FL_SIGNATURE(fl::tileAs, Variable (*)(V, const Shape&));
FL_SIGNATURE(fl::sumAs, Variable (*)(V, V));
FL_SIGNATURE(fl::sumAs, Variable (*)(V, const Shape&));
FL_SIGNATURE(fl::concatenate, Variable (*)(const std::vector<Variable>&, int));
FL_SIGNATURE(fl::split, std::vector<Variable> (*)(V, long, int));
FL_SIGNATURE(fl::split, std::vector<Variable> (*)(V, const std::vector<long>&, int));
FL_SIGNATURE(fl::tile, Variable (*)(V, const Shape&));
FL_SIGNATURE(fl::tile, Variable (*)(V, const Shape&, const dtype));
FL_OF_ONE(fl::flat);
FL_SIGNATURE(fl::moddims, Variable (*)(V, const Shape&));
FL_SIGNATURE(fl::padding, Variable (*)(V, std::vector<std::pair<int, int>>, double));

// ---- Reductions ----
FL_SIGNATURE(fl::sum, Variable (*)(V, Axes, bool));
FL_CALL(sum(declval<V>(), declval<Axes>()), Variable);
FL_SIGNATURE(fl::mean, Variable (*)(V, Axes, bool));
FL_CALL(mean(declval<V>(), declval<Axes>()), Variable);
FL_SIGNATURE(fl::var, Variable (*)(V, Axes, const bool, bool));
FL_CALL(var(declval<V>(), declval<Axes>()), Variable);
FL_SIGNATURE(fl::norm, Variable (*)(V, Axes, double, bool));
FL_CALL(norm(declval<V>(), declval<Axes>()), Variable);
FL_SIGNATURE(fl::normalize, Variable (*)(V, Axes, double, double));
FL_CALL(normalize(declval<V>(), declval<Axes>()), Variable);
FL_SIGNATURE(fl::softmax, Variable (*)(V, const int));
FL_SIGNATURE(fl::logSoftmax, Variable (*)(V, const int));

// ---- Matrices ----
FL_SIGNATURE(fl::matmul, Variable (*)(V, V));
FL_SIGNATURE(fl::matmulTN, Variable (*)(V, V));
FL_SIGNATURE(fl::matmulNT, Variable (*)(V, V));
FL_SIGNATURE(fl::linear, Variable (*)(V, V));
FL_SIGNATURE(fl::linear, Variable (*)(V, V, V));

// ---- Neural networks ----
using Benchmarks = std::shared_ptr<detail::ConvBenchmarks>;
FL_SIGNATURE(fl::conv2d, Variable (*)(V, V, int, int, int, int, int, int, int, Benchmarks));
FL_SIGNATURE(fl::conv2d, Variable (*)(V, V, V, int, int, int, int, int, int, int, Benchmarks));
FL_CALL(conv2d(declval<V>(), declval<V>()), Variable);
FL_CALL(conv2d(declval<V>(), declval<V>(), declval<V>()), Variable);
FL_SIGNATURE(fl::pool2d, Variable (*)(V, int, int, int, int, int, int, PoolingMode));
FL_CALL(pool2d(declval<V>(), 1, 1), Variable);
FL_SIGNATURE(fl::batchnorm,
             Variable (*)(V, V, V, Variable&, Variable&, Axes, bool, double, double));
FL_SIGNATURE(fl::rnn, std::tuple<Variable, Variable, Variable> (*)(V, V, V, V, int, int, RnnMode,
                                                                   bool, float));
FL_SIGNATURE(fl::dropout, Variable (*)(V, double));
FL_SIGNATURE(fl::gatedlinearunit, Variable (*)(V, const int));
FL_SIGNATURE(fl::embedding, Variable (*)(V, V));
FL_OF_ONE(fl::relativePositionalEmbeddingRotate);
FL_SIGNATURE(fl::multiheadAttention,
             Variable (*)(V, V, V, V, V, V, const int32_t, const double, const int32_t));
FL_CALL(multiheadAttention(declval<V>(), declval<V>(), declval<V>(), declval<V>(), declval<V>(),
                           declval<V>(), 1, 0.0),
        Variable);

// ---- Losses ----
FL_SIGNATURE(fl::binaryCrossEntropy, Variable (*)(V, V));
FL_SIGNATURE(fl::categoricalCrossEntropy, Variable (*)(V, V, ReduceMode, int));
FL_CALL(categoricalCrossEntropy(declval<V>(), declval<V>()), Variable);
FL_SIGNATURE(fl::weightedCategoricalCrossEntropy, Variable (*)(V, V, V, int));

// ---- Utilities ----
FL_SIGNATURE(fl::allClose, bool (*)(V, V, double));
FL_CALL(allClose(declval<V>(), declval<V>()), bool);
FL_SIGNATURE(detail::tileAs, Tensor (*)(const Tensor&, const Shape&));
FL_SIGNATURE(detail::sumAs, Tensor (*)(const Tensor&, const Shape&));
FL_SIGNATURE(detail::expandedShapeFromReducedDims, Shape (*)(const Tensor&, Axes, bool));
FL_CALL(detail::expandedShapeFromReducedDims(declval<const Tensor&>(), declval<Axes>()), Shape);
FL_SIGNATURE(detail::areVariableTypesEqual, bool (*)(V, V));
FL_CALL(detail::areVariableTypesEqual(declval<V>(), declval<V>(), declval<V>()), bool);
FL_SIGNATURE(detail::adjustInputType<Variable>, Variable (*)(V, const char*));
FL_SIGNATURE(detail::adjustInputType<Tensor>, Tensor (*)(const Tensor&, const char*));
FL_CALL(detail::createAutogradPayload(declval<V>()), std::shared_ptr<detail::AutogradPayload>);
FL_CALL(detail::createAutogradPayload(declval<V>(), declval<V>()),
        std::shared_ptr<detail::AutogradPayload>);

// ---- Mixed precision ----
static_assert(static_cast<int>(OptimLevel::DEFAULT) == 0 && static_cast<int>(OptimLevel::O1) == 1 &&
              static_cast<int>(OptimLevel::O2) == 2 && static_cast<int>(OptimLevel::O3) == 3);
FL_SIGNATURE(OptimMode::get, OptimMode& (*)());
FL_METHOD(OptimMode::getOptimLevel, OptimLevel (OptimMode::*)());
FL_METHOD(OptimMode::setOptimLevel, void (OptimMode::*)(OptimLevel));
FL_SIGNATURE(OptimMode::toOptimLevel, OptimLevel (*)(const std::string&));
static_assert(is_same_v<decltype(OptimMode::kStringToOptimLevel),
                        const std::unordered_map<std::string, OptimLevel>>);

}  // namespace
}  // namespace fl::test
