#include <optional>

#include "fl/autograd/Functions.h"
#include "fl/autograd/Internal.h"
#include "fl/base/CallSite.h"
#include "fl/tensor/TableOps.h"

namespace fl {

using detail::binaryResult;
using detail::toType;
using detail::unaryResult;

namespace {

// The targets of a categorical loss over `classes` classes, as a row of one target a column.
struct ClassTargets {
  ClassTargets(const Tensor& targets, Dim classes, int ignoreIndex)
      : classes(static_cast<int>(classes)) {
    row = toType(reshape(targets, {1, targets.shape().elements()}), dtype::s64);
    counted = row != ignoreIndex;
  }

  // (classes, targets): `each` where a target that counts picks the class, else 0, whatever it is.
  Tensor picked(const Tensor& each) const {
    return where(arange(Shape({classes, 1}), 0, row.type()) == row && counted, each, 0.0);
  }
  // The element of (classes, targets) that each target picks, in a row; 0 if it does not count. A
  // target that is no class is an error when the result is computed.
  Tensor pick(const Tensor& table) const {
    const Tensor index = row * counted.astype(row.type());
    return where(counted, table::gather(table, index, 0), 0.0);
  }

  int classes;
  Tensor row;
  Tensor counted;  // all that are not ignored
};

void checkTargets(const char* function, const Variable& input, const Variable& targets) {
  const auto fail = [&](const std::string& rule) {
    throwUser(function, ": targets ", typeToString(targets.type(), targets.shape()),
              " do not fit input ", typeToString(input.type(), input.shape()), ": ", rule);
  };
  if (input.ndim() != targets.ndim() + 1) fail("they must have one dimension less");
  for (unsigned i = 1; i < input.ndim(); ++i) {
    if (input.dim(i) != targets.dim(i - 1)) {
      fail(detail::concat("dimension ", i - 1, " must be the input's dimension ", i));
    }
  }
}

}  // namespace

Variable binaryCrossEntropy(const Variable& inputs, const Variable& targets) {
  FL_API_ENTRY();
  const Variable logs = log(inputs);
  const Variable y = toType(targets, logs.type());
  return negate(y * logs + (1 - y) * log(1 - inputs));
}

Variable categoricalCrossEntropy(const Variable& in, const Variable& targets, ReduceMode reduction,
                                 int ignoreIndex) {
  FL_API_ENTRY();
  checkEnumerator("categoricalCrossEntropy", "ReduceMode", reduction, ReduceMode::SUM);
  const Variable input = FL_ADJUST_INPUT_TYPE(in);
  checkTargets("categoricalCrossEntropy", input, targets);
  const Shape shape = input.shape();
  const Dim count = targets.elements();
  const ClassTargets classes(targets.tensor(), shape[0], ignoreIndex);

  const Tensor losses = -classes.pick(reshape(input.tensor(), {shape[0], count}));

  if (reduction == ReduceMode::NONE) {
    return unaryResult(toType(reshape(losses, targets.shape()), input.type()), input,
                       [classes, shape, count](const Tensor& grad) {
                         return reshape(classes.picked(-reshape(grad, {1, count})), shape);
                       });
  }
  std::optional<Tensor> divisor;
  Tensor loss = sum(losses);
  if (reduction == ReduceMode::MEAN) {
    divisor = sum(classes.counted.astype(dtype::f32));
    loss = loss / *divisor;
  }
  return unaryResult(toType(loss, input.type()), input,
                     [classes, divisor, shape](const Tensor& grad) {
                       const Tensor each = divisor ? grad / *divisor : grad;
                       return reshape(classes.picked(-each), shape);
                     });
}

Variable weightedCategoricalCrossEntropy(const Variable& input, const Variable& targets,
                                         const Variable& weight, int ignoreIndex) {
  FL_API_ENTRY();
  checkTargets("weightedCategoricalCrossEntropy", input, targets);
  const Dim count = input.dim(0);
  FL_USER_CHECK(weight.shape() == Shape({count}), "weightedCategoricalCrossEntropy: weight ",
                typeToString(weight.type(), weight.shape()), " does not fit input ",
                typeToString(input.type(), input.shape()), ": it must have shape (", count, ")");
  const ClassTargets classes(targets.tensor(), count, ignoreIndex);

  const Tensor losses = -classes.pick(reshape(input.tensor(), {count, targets.elements()}));
  const Tensor weights = classes.pick(reshape(weight.tensor(), {count, 1}));
  const Tensor total = sum(weights);
  const Tensor loss = sum(losses * weights) / total;
  return binaryResult(
      toType(loss, input.type()), input, weight,
      [=, shape = input.shape()](const Tensor& grad) {
        return reshape(classes.picked(-(weights * (grad / total))), shape);
      },
      [=](const Tensor& grad) {
        return sum(classes.picked((losses - loss) * (grad / total)), {1});
      });
}

}  // namespace fl
