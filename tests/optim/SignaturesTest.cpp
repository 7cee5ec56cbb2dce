// Flashlight's optimizers with its exact types and default arguments. Compared with the headers of
// flashlight/fl/optim. Nothing runs.
#include <string>
#include <vector>

#include "fl/optim/optim.h"
#include "tests/ExactTypes.h"

namespace fl::test {
namespace {

using Parameters = std::vector<Variable>;
using Optimizer = FirstOrderOptimizer;

FL_METHOD(Optimizer::step, void (Optimizer::*)());
FL_METHOD(Optimizer::getLr, double (Optimizer::*)() const);
FL_METHOD(Optimizer::setLr, void (Optimizer::*)(double));
FL_METHOD(Optimizer::zeroGrad, void (Optimizer::*)());
FL_METHOD(Optimizer::prettyString, std::string (Optimizer::*)() const);
static_assert(std::has_virtual_destructor_v<Optimizer> && std::is_abstract_v<Optimizer>);

// What an optimizer of the user's own derives from.
class Own : public Optimizer {
 public:
  Own(const Parameters& parameters, double lr) : Optimizer(parameters, lr) {}
  void step() override { parameters_.at(0).tensor() -= lr_; }
  std::string prettyString() const override { return "Own"; }
};
FL_TAKES(Own, 2, Parameters, double);

FL_TAKES(SGDOptimizer, 2, Parameters, double, double, double, bool);
FL_TAKES(AdamOptimizer, 2, Parameters, double, double, double, double, double);
FL_TAKES(RMSPropOptimizer, 2, Parameters, double, double, double, double, bool);
FL_TAKES(AdadeltaOptimizer, 1, Parameters, double, double, double, double);
FL_TAKES(AdagradOptimizer, 1, Parameters, double, double, double);
FL_TAKES(AMSgradOptimizer, 2, Parameters, double, double, double, double, double);
FL_TAKES(NAGOptimizer, 2, Parameters, double, double, double);
FL_TAKES(NovogradOptimizer, 2, Parameters, double, double, double, double, double);
static_assert(!std::is_convertible_v<Parameters, AdadeltaOptimizer> &&
              !std::is_convertible_v<Parameters, AdagradOptimizer>);
#define FL_OPTIMIZER(Class)                           \
  static_assert(std::is_base_of_v<Optimizer, Class>); \
  FL_METHOD(Class::step, void (Class::*)());          \
  FL_METHOD(Class::prettyString, std::string (Class::*)() const)
FL_OPTIMIZER(SGDOptimizer);
FL_OPTIMIZER(AdamOptimizer);
FL_OPTIMIZER(RMSPropOptimizer);
FL_OPTIMIZER(AdadeltaOptimizer);
FL_OPTIMIZER(AdagradOptimizer);
FL_OPTIMIZER(AMSgradOptimizer);
FL_OPTIMIZER(NAGOptimizer);
FL_OPTIMIZER(NovogradOptimizer);

// In Flashlight a double, which this is where it is used as one.
FL_SIGNATURE(clipGradNorm, RecordedScalar<double> (*)(const Parameters&, double));
static_assert(std::is_convertible_v<RecordedScalar<double>, double>);

}  // namespace
}  // namespace fl::test
