// The modules of contrib with Flashlight's exact types and default arguments. Compared with the
// headers of flashlight/fl/contrib/modules. Nothing runs.
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "fl/contrib/contrib.h"
#include "fl/nn/nn.h"
#include "tests/ExactTypes.h"

namespace fl::test {
namespace {

using V = const Variable&;
using Variables = std::vector<Variable>;
using Pad = fl::detail::IntOrPadMode;
using std::declval;

#define FL_MODULE(Class)                                               \
  FL_METHOD(Class::forward, Variables (Class::*)(const Variables&));   \
  FL_METHOD(Class::prettyString, std::string (Class::*)() const);      \
  FL_METHOD(Class::clone, std::unique_ptr<Module> (Class::*)() const); \
  static_assert(std::is_copy_constructible_v<Class> && std::is_copy_assignable_v<Class>)
#define FL_UNARY(Class)                                 \
  FL_MODULE(Class);                                     \
  static_assert(std::is_base_of_v<UnaryModule, Class>); \
  FL_METHOD(Class::forward, Variable (Class::*)(V))
#define FL_CONTAINER(Class) \
  FL_MODULE(Class);         \
  static_assert(std::is_base_of_v<Container, Class>)

FL_UNARY(AdaptiveEmbedding);
FL_TAKES(AdaptiveEmbedding, 2, int, std::vector<int>, float);

FL_UNARY(AsymmetricConv1D);
static_assert(std::is_base_of_v<Conv2D, AsymmetricConv1D>);
FL_TAKES(AsymmetricConv1D, 3, int, int, int, int, Pad, float, int, bool, int);
FL_TAKES(AsymmetricConv1D, 1, Variable, int, Pad, float, int, int);
FL_TAKES(AsymmetricConv1D, 2, Variable, Variable, int, Pad, float, int, int);
static_assert(!std::is_convertible_v<Variable, AsymmetricConv1D>);

FL_CONTAINER(Conformer);
FL_TAKES(Conformer, 7, int32_t, int32_t, int32_t, int32_t, int32_t, int32_t, float, float);

FL_CONTAINER(PositionEmbedding);
FL_TAKES(PositionEmbedding, 2, int32_t, int32_t, double);

FL_UNARY(RawWavSpecAugment);
FL_TAKES(RawWavSpecAugment, 6, int, int, int, int, float, int, int, int, int, int, int,
         RawWavSpecAugment::MaskingStrategy);

FL_CONTAINER(Residual);
FL_TAKES(Residual, 0);
FL_METHOD(Residual::forward, Variable (Residual::*)(V));
FL_METHOD(Residual::getProjectionsIndices, std::unordered_set<int> (Residual::*)() const);
FL_METHOD(Residual::addScale, void (Residual::*)(int, float));
FL_METHOD(Residual::addShortcut, void (Residual::*)(int, int));
FL_METHOD(Residual::addShortcut<Linear>, void (Residual::*)(int, int, const Linear&));
FL_METHOD(Residual::addShortcut<Linear>, void (Residual::*)(int, int, std::shared_ptr<Linear>));

FL_MODULE(SinusoidalPositionEmbedding);
FL_TAKES(SinusoidalPositionEmbedding, 1, int32_t, double);

FL_UNARY(SpecAugment);
FL_TAKES(SpecAugment, 6, int, int, int, int, float, int, SpecAugment::MaskingStrategy);
using Strategy = SpecAugment::MaskingStrategy;
static_assert(static_cast<int>(Strategy::ZERO) == 0 &&
              static_cast<int>(Strategy::GLOBAL_MEAN) == 1);

FL_CONTAINER(TDSBlock);
FL_TAKES(TDSBlock, 3, int, int, int, double, int, int, bool);

FL_CONTAINER(Transformer);
FL_TAKES(Transformer, 7, int32_t, int32_t, int32_t, int32_t, int32_t, float, float, bool, bool);

}  // namespace
}  // namespace fl::test
