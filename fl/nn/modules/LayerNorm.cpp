#include "fl/nn/modules/LayerNorm.h"

#include <algorithm>

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::LayerNorm)

namespace fl {
namespace {

constexpr int kDimensions = 4;

// The axes below kDimensions that are not in `axes`.
std::vector<int> complement(const std::vector<int>& axes) {
  std::vector<int> others;
  for (int axis = 0; axis < kDimensions; ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      others.push_back(axis);
    }
  }
  return others;
}

// Over `axes`, where `kept` are the others. Those are put last unless they are neighbours.
Variable standardizeOver(const std::vector<int>& axes, const std::vector<int>& kept,
                         const Variable& input, double eps) {
  if (kept.back() - kept.front() + 1 == static_cast<int>(kept.size())) {
    return detail::standardize(input, kept, eps);
  }
  Shape order, inverse({0, 0, 0, 0});
  std::vector<int> last;
  for (const std::vector<int>* part : {&axes, &kept}) {
    for (const int axis : *part) {
      inverse[axis] = order.ndim();
      order.get().push_back(axis);
    }
  }
  for (size_t i = axes.size(); i < kDimensions; ++i) {
    last.push_back(static_cast<int>(i));
  }
  return reorder(detail::standardize(reorder(input, order), last, eps), inverse);
}

}  // namespace

LayerNorm::LayerNorm(int axis, double eps, bool affine, int axisSize)
    : LayerNorm(std::vector<int>{axis}, eps, affine, axisSize) {}

LayerNorm::LayerNorm(const std::vector<int>& axis, double eps, bool affine, int axisSize)
    : axisComplement_(complement(axis)), epsilon_(eps), affine_(affine), axisSize_(axisSize) {
  FL_API_ENTRY();
  FL_USER_CHECK(!axis.empty() && axisComplement_.size() + axis.size() == kDimensions,
                "LayerNorm: axes ", detail::axesToString(axis), " are not different ones of ",
                kDimensions);
  FL_USER_CHECK(!axisComplement_.empty(), "LayerNorm: no axis is left to tell samples apart");
  FL_USER_CHECK(axisSize > 0 || axisSize == kLnVariableAxisSize,
                "LayerNorm: the size must be positive or kLnVariableAxisSize, not ", axisSize);
  if (affine) {
    const Shape shape({axisSize == kLnVariableAxisSize ? 1 : axisSize});
    params_ = {constant(1.0, shape), constant(0.0, shape)};
  }
}

std::vector<int> LayerNorm::axes() const { return complement(axisComplement_); }

Variable LayerNorm::forward(const Variable& input) {
  FL_API_ENTRY();
  FL_USER_CHECK(input.ndim() <= kDimensions, prettyString(), ": the input must have at most ",
                kDimensions, " dimensions, not ", typeToString(input.type(), input.shape()));
  Shape shape = input.shape();
  shape.get().resize(kDimensions, 1);
  Variable result = standardizeOver(axes(), axisComplement_, moddims(input, shape), epsilon_);
  if (affine_) {
    Shape affineShape({1, 1, 1, 1});
    if (axisSize_ != kLnVariableAxisSize) {
      for (const int axis : axes()) {
        affineShape[axis] = shape[axis];
      }
      FL_USER_CHECK(affineShape.elements() == axisSize_, prettyString(), ": the input ",
                    typeToString(input.type(), input.shape()), " has ", affineShape.elements(),
                    " elements to normalise, not ", axisSize_);
    }
    result = detail::scaleAndShift(result, params_[0], params_[1], affineShape);
  }
  return moddims(result, input.shape());
}

std::string LayerNorm::prettyString() const {
  return detail::concat("LayerNorm ( axis : ", detail::axesToString(axes()),
                        " , size : ", axisSize_, ")");
}

}  // namespace fl
