// Flashlight's modules, losses and initializers with its exact types and default arguments: a
// program that derives from them, takes addresses or leaves arguments out compiles here as it does
// there. Compared with the headers of flashlight/fl/nn. Nothing runs.
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fl/autograd/Functions.h"
#include "fl/nn/nn.h"
#include "tests/ExactTypes.h"

namespace fl::test {
namespace {

using V = const Variable&;
using Variables = std::vector<Variable>;
using Ints = std::vector<int>;
using Pad = fl::detail::IntOrPadMode;
using std::declval;
using std::is_base_of_v;
using std::is_convertible_v;

// ---- Bases ----
static_assert(std::is_same_v<ModulePtr, std::shared_ptr<Module>>);
static_assert(std::is_abstract_v<Module> && std::has_virtual_destructor_v<Module>);
FL_METHOD(Module::params, Variables (Module::*)() const);
FL_METHOD(Module::numParamTensors, int (Module::*)() const);
FL_METHOD(Module::param, Variable (Module::*)(int) const);
FL_METHOD(Module::setParams, void (Module::*)(V, int));
FL_METHOD(Module::copyParams, Variables (Module::*)() const);
FL_METHOD(Module::train, void (Module::*)());
FL_METHOD(Module::eval, void (Module::*)());
FL_METHOD(Module::zeroGrad, void (Module::*)());
FL_METHOD(Module::forward, Variables (Module::*)(const Variables&));
FL_METHOD(Module::operator(), Variables (Module::*)(const Variables&));
FL_METHOD(Module::clone, std::unique_ptr<Module> (Module::*)() const);
FL_METHOD(Module::prettyString, std::string (Module::*)() const);
FL_METHOD(UnaryModule::forward, Variable (UnaryModule::*)(V));
FL_METHOD(UnaryModule::operator(), Variable (UnaryModule::*)(V));
FL_METHOD(BinaryModule::forward, Variable (BinaryModule::*)(V, V));
FL_METHOD(BinaryModule::operator(), Variable (BinaryModule::*)(V, V));

FL_METHOD(Container::module, ModulePtr (Container::*)(int) const);
FL_METHOD(Container::modules, std::vector<ModulePtr> (Container::*)() const);
FL_CALL(declval<Container&>().add(declval<Linear>()), void);
FL_CALL(declval<Container&>().add(declval<std::shared_ptr<Linear>>()), void);
FL_CALL(declval<Container&>().add(declval<std::unique_ptr<Linear>>()), void);
// Protected there.
FL_METHOD(Container::getOrphanedParamsIdxMap,
          std::unordered_multimap<int, int> (Container::*)() const);

#define FL_MODULE(Class)                                                                   \
  FL_METHOD(Class::forward, Variables (Class::*)(const Variables&));                       \
  FL_METHOD(Class::prettyString, std::string (Class::*)() const);                          \
  FL_METHOD(Class::clone, std::unique_ptr<Module> (Class::*)() const);                     \
  static_assert(std::is_copy_constructible_v<Class> && std::is_copy_assignable_v<Class> && \
                std::is_move_constructible_v<Class> && std::is_move_assignable_v<Class>)
#define FL_UNARY(Class)                              \
  FL_MODULE(Class);                                  \
  static_assert(is_base_of_v<UnaryModule, Class>);   \
  FL_METHOD(Class::forward, Variable (Class::*)(V)); \
  FL_METHOD(Class::operator(), Variable (Class::*)(V))

FL_MODULE(Sequential);
FL_TAKES(Sequential, 0);
FL_METHOD(Sequential::forward, Variable (Sequential::*)(V));
FL_METHOD(Sequential::operator(), Variable (Sequential::*)(V));

// What a module of the user's own derives from.
class OwnUnary : public UnaryModule {
 public:
  OwnUnary() = default;
  explicit OwnUnary(const Variables& params) : UnaryModule(params) {}
  using UnaryModule::forward;
  Variable forward(V input) override { return train_ ? input * params_.at(0) : input; }
  std::unique_ptr<Module> clone() const override { return std::make_unique<OwnUnary>(*this); }
  std::string prettyString() const override { return "OwnUnary"; }
};
class OwnContainer : public Container {
 public:
  OwnContainer() { add(OwnUnary()); }
  FL_BASIC_CONTAINER_CLONING(OwnContainer)
  Variables forward(const Variables& inputs) override { return modules_.at(0)->forward(inputs); }
};
FL_MODULE(OwnContainer);
class OwnConvolution : public Conv2D {
 public:
  OwnConvolution() : Conv2D(1, 1, 3, 3) {}
  int positions() const {
    return nIn_ + nOut_ + xFilter_ + yFilter_ + xStride_ + yStride_ + xPad_ + yPad_ + xDilation_ +
           yDilation_ + bias_ + groups_;
  }
  Variable convolved(V input) const {
    return conv2d(input, params_[0], 1, 1, 0, 0, 1, 1, 1, benchmarks_);
  }
};
class FL_API OwnNormalization : public BatchNorm {
 public:
  OwnNormalization() : BatchNorm(2, 3) { BatchNorm::initialize(); }
};

// ---- Activations ----
#define FL_WITHOUT_SETTINGS(Class) \
  FL_UNARY(Class);                 \
  FL_TAKES(Class, 0)
FL_WITHOUT_SETTINGS(Sigmoid);
FL_WITHOUT_SETTINGS(Log);
FL_WITHOUT_SETTINGS(Tanh);
FL_WITHOUT_SETTINGS(HardTanh);
FL_WITHOUT_SETTINGS(ReLU);
FL_WITHOUT_SETTINGS(ReLU6);
FL_WITHOUT_SETTINGS(Identity);
#define FL_WITH_SETTING(Class, Setting) \
  FL_UNARY(Class);                      \
  FL_TAKES(Class, 0, Setting);          \
  static_assert(is_convertible_v<Setting, Class>)
FL_WITH_SETTING(LeakyReLU, double);
FL_WITH_SETTING(ELU, double);
FL_WITH_SETTING(ThresholdReLU, double);
FL_WITH_SETTING(GatedLinearUnit, int);
FL_WITH_SETTING(LogSoftmax, int);
FL_WITH_SETTING(Swish, double);
FL_WITH_SETTING(Dropout, double);
FL_UNARY(PReLU);
FL_TAKES(PReLU, 1, int, double);
FL_TAKES(PReLU, 1, Variable);
static_assert(!is_convertible_v<int, PReLU> && !is_convertible_v<Variable, PReLU>);

// ---- Other modules ----
FL_UNARY(AdaptiveSoftMax);
FL_TAKES(AdaptiveSoftMax, 0);
FL_TAKES(AdaptiveSoftMax, 2, int, Ints, float);
FL_METHOD(AdaptiveSoftMax::predict, Variable (AdaptiveSoftMax::*)(V) const);
FL_METHOD(AdaptiveSoftMax::getCutoff, Ints (AdaptiveSoftMax::*)() const);

FL_UNARY(BatchNorm);
FL_TAKES(BatchNorm, 2, int, int, double, double, bool, bool);
FL_TAKES(BatchNorm, 2, Ints, int, double, double, bool, bool);

FL_UNARY(Conv2D);
FL_TAKES(Conv2D, 4, int, int, int, int, int, int, Pad, Pad, int, int, bool, int);
FL_TAKES(Conv2D, 1, Variable, int, int, Pad, Pad, int, int, int);
FL_TAKES(Conv2D, 2, Variable, Variable, int, int, Pad, Pad, int, int, int);
static_assert(!is_convertible_v<Variable, Conv2D>);
static_assert(is_convertible_v<int, Pad> && is_convertible_v<PaddingMode, Pad>);
static_assert(std::is_same_v<decltype(Pad::padVal), const int>);

FL_UNARY(Embedding);
FL_TAKES(Embedding, 2, int, int);
FL_TAKES(Embedding, 1, Variable);
static_assert(!is_convertible_v<Variable, Embedding>);

FL_UNARY(LayerNorm);
FL_TAKES(LayerNorm, 1, int, double, bool, int);
FL_TAKES(LayerNorm, 1, Ints, double, bool, int);
static_assert(!is_convertible_v<int, LayerNorm> && !is_convertible_v<Ints, LayerNorm>);
static_assert(kLnVariableAxisSize == -1);

FL_UNARY(Linear);
FL_TAKES(Linear, 2, int, int, bool);
FL_TAKES(Linear, 1, Variable);
FL_TAKES(Linear, 2, Variable, Variable);
static_assert(!is_convertible_v<Variable, Linear>);

FL_UNARY(Normalize);
FL_TAKES(Normalize, 1, Ints, double, double, double);
static_assert(!is_convertible_v<Ints, Normalize>);

using Pair = std::pair<int, int>;
FL_UNARY(Padding);
FL_TAKES(Padding, 2, std::vector<Pair>, double);
FL_TAKES(Padding, 2, Pair, double);
FL_TAKES(Padding, 3, Pair, Pair, double);
FL_TAKES(Padding, 4, Pair, Pair, Pair, double);
FL_TAKES(Padding, 5, Pair, Pair, Pair, Pair, double);

FL_UNARY(Pool2D);
FL_TAKES(Pool2D, 2, int, int, int, int, Pad, Pad, PoolingMode);

FL_MODULE(PrecisionCast);
FL_TAKES(PrecisionCast, 1, dtype);
static_assert(!is_convertible_v<dtype, PrecisionCast>);
FL_METHOD(PrecisionCast::forward, Variable (PrecisionCast::*)(V));
FL_METHOD(PrecisionCast::operator(), Variable (PrecisionCast::*)(V));

FL_MODULE(RNN);
FL_TAKES(RNN, 4, int, int, int, RnnMode, bool, float);
#define FL_RNN(name)                                                   \
  FL_METHOD(RNN::name, Variable (RNN::*)(V));                          \
  FL_METHOD(RNN::name, std::tuple<Variable, Variable> (RNN::*)(V, V)); \
  FL_METHOD(RNN::name, std::tuple<Variable, Variable, Variable> (RNN::*)(V, V, V))
FL_RNN(forward);
FL_RNN(operator());

FL_UNARY(Reorder);
FL_TAKES(Reorder, 1, Shape);
FL_UNARY(View);
FL_TAKES(View, 1, Shape);
static_assert(!is_convertible_v<Shape, Reorder> && !is_convertible_v<Shape, View>);

using OneToOne = std::function<Variable(V)>;
FL_UNARY(Transform);
FL_TAKES(Transform, 1, OneToOne, std::string);
static_assert(!is_convertible_v<OneToOne, Transform>);

FL_MODULE(WeightNorm);
static_assert(std::is_constructible_v<WeightNorm, const Linear&, int> &&
              std::is_constructible_v<WeightNorm, Conv2D, int> &&
              std::is_constructible_v<WeightNorm, std::shared_ptr<Linear>, int>);
FL_METHOD(WeightNorm::module, ModulePtr (WeightNorm::*)() const);

// ---- Losses ----
#define FL_LOSS(Class)                                  \
  FL_MODULE(Class);                                     \
  static_assert(is_base_of_v<BinaryModule, Class>);     \
  FL_METHOD(Class::forward, Variable (Class::*)(V, V)); \
  FL_METHOD(Class::operator(), Variable (Class::*)(V, V))
FL_LOSS(MeanSquaredError);
FL_TAKES(MeanSquaredError, 0);
FL_LOSS(MeanAbsoluteError);
FL_TAKES(MeanAbsoluteError, 0);
static_assert(std::is_same_v<MSE, MeanSquaredError> && std::is_same_v<MAE, MeanAbsoluteError> &&
              std::is_same_v<L1Loss, MeanAbsoluteError>);
FL_LOSS(BinaryCrossEntropy);
FL_TAKES(BinaryCrossEntropy, 0);
FL_METHOD(BinaryCrossEntropy::forward, Variable (BinaryCrossEntropy::*)(V, V, V));
FL_LOSS(CategoricalCrossEntropy);
FL_TAKES(CategoricalCrossEntropy, 0, ReduceMode, int);
static_assert(!is_convertible_v<ReduceMode, CategoricalCrossEntropy>);
FL_LOSS(AdaptiveSoftMaxLoss);
FL_TAKES(AdaptiveSoftMaxLoss, 0, std::shared_ptr<AdaptiveSoftMax>, ReduceMode, int);
static_assert(!is_convertible_v<std::shared_ptr<AdaptiveSoftMax>, AdaptiveSoftMaxLoss>);
FL_METHOD(AdaptiveSoftMaxLoss::getActivation,
          std::shared_ptr<AdaptiveSoftMax> (AdaptiveSoftMaxLoss::*)() const);

// ---- Init.h ----
using S = const Shape&;
FL_SIGNATURE(fl::input, Variable (*)(const Tensor&));
FL_SIGNATURE(fl::noGrad, Variable (*)(const Tensor&));
FL_SIGNATURE(fl::param, Variable (*)(const Tensor&));
FL_SIGNATURE(fl::constant, Variable (*)(double, int, int, dtype, bool));
FL_SIGNATURE(fl::constant, Variable (*)(double, S, dtype, bool));
FL_CALL(constant(1.0, 2, 3), Variable);
FL_CALL(constant(1.0, declval<S>()), Variable);
FL_SIGNATURE(fl::scalar<float>, Variable (*)(float, dtype, bool));
FL_CALL(fl::scalar(1.0f), Variable);
FL_SIGNATURE(fl::identity, Variable (*)(int, int, dtype, bool));
FL_SIGNATURE(fl::identity, Variable (*)(S, dtype, bool));
#define FL_DISTRIBUTION(name)                                                  \
  FL_SIGNATURE(fl::name, Variable (*)(int, int, double, double, dtype, bool)); \
  FL_SIGNATURE(fl::name, Variable (*)(S, double, double, dtype, bool));        \
  FL_SIGNATURE(fl::detail::name, Tensor (*)(S, double, double, dtype));        \
  FL_CALL(name(2, 3), Variable);                                               \
  FL_CALL(name(declval<S>()), Variable);                                       \
  FL_CALL(fl::detail::name(declval<S>()), Tensor)
FL_DISTRIBUTION(uniform);
FL_DISTRIBUTION(normal);
#define FL_KAIMING(name)                                     \
  FL_SIGNATURE(fl::name, Variable (*)(S, int, dtype, bool)); \
  FL_SIGNATURE(fl::detail::name, Tensor (*)(S, int, dtype)); \
  FL_CALL(name(declval<S>(), 1), Variable);                  \
  FL_CALL(fl::detail::name(declval<S>(), 1), Tensor)
FL_KAIMING(kaimingUniform);
FL_KAIMING(kaimingNormal);
#define FL_GLOROT(name)                                           \
  FL_SIGNATURE(fl::name, Variable (*)(S, int, int, dtype, bool)); \
  FL_SIGNATURE(fl::detail::name, Tensor (*)(S, int, int, dtype)); \
  FL_CALL(name(declval<S>(), 1, 1), Variable);                    \
  FL_CALL(fl::detail::name(declval<S>(), 1, 1), Tensor)
FL_GLOROT(glorotUniform);
FL_GLOROT(glorotNormal);
FL_SIGNATURE(fl::truncNormal, Variable (*)(S, double, double, double, double, dtype, bool));
FL_CALL(truncNormal(declval<S>()), Variable);
FL_SIGNATURE(fl::detail::erfinv, Tensor (*)(const Tensor&));

// ---- Utils.h ----
FL_SIGNATURE(fl::numTotalParams, int64_t (*)(std::shared_ptr<Module>));
FL_SIGNATURE(fl::allParamsClose, bool (*)(const Module&, const Module&, double));
FL_CALL(allParamsClose(declval<const Module&>(), declval<const Module&>()), bool);
FL_SIGNATURE(fl::detail::getNumRnnParams, int64_t (*)(int, int, int, RnnMode, bool));
FL_SIGNATURE(fl::derivePadding, int (*)(int, int, int, int, int));
FL_SIGNATURE(fl::join, Tensor (*)(const std::vector<Tensor>&, double, int));
FL_CALL(join(declval<const std::vector<Tensor>&>()), Tensor);

}  // namespace
}  // namespace fl::test
