#include "fl/nn/modules/WeightNorm.h"

#include "fl/autograd/Functions.h"
#include "fl/autograd/Utils.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/modules/Conv2D.h"
#include "fl/nn/modules/Linear.h"

CEREAL_REGISTER_TYPE(fl::WeightNorm)

namespace fl {

WeightNorm::WeightNorm(ModulePtr module, int dim) : module_(std::move(module)), dim_(dim) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(dynamic_cast<Linear*>(module_.get()) || dynamic_cast<Conv2D*>(module_.get()),
                "WeightNorm: takes a Linear or a Conv2D, not ",
                module_ ? module_->prettyString() : "null");
  const Variable v = module_->param(0);
  FL_USER_CHECK(dim >= 0 && dim < static_cast<int>(v.ndim()), "WeightNorm: no dimension ", dim,
                " in the weight ", typeToString(v.type(), v.shape()));
  const Tensor g = norm(v.tensor(), normDim(), 2, /*keepDims=*/true);
  params_ = module_->params();
  params_.insert(params_.begin() + 1, Variable(g, true));
}

// What the copied module shares with its original is replaced.
WeightNorm::WeightNorm(const WeightNorm& other)
    : CloneableModule<WeightNorm>(other), module_(other.module_->clone()), dim_(other.dim_) {
  if (params_.size() > 2) module_->setParams(params_[2], 1);
  computeWeight();
}

WeightNorm& WeightNorm::operator=(const WeightNorm& other) { return *this = WeightNorm(other); }

std::vector<int> WeightNorm::normDim() const {
  std::vector<int> axes;
  for (int axis = 0; axis < static_cast<int>(module_->param(0).ndim()); ++axis) {
    if (axis != dim_) axes.push_back(axis);
  }
  return axes;
}

void WeightNorm::computeWeight() {
  const Variable& v = params_[0];
  const Variable g = detail::toType(params_[1], v.type());
  // In the weight's type, whatever mixed precision takes the norm in.
  const Variable length = detail::toType(norm(v, normDim(), 2, /*keepDims=*/true), v.type());
  module_->setParams(v * (g / length), 0);
}

void WeightNorm::train() {
  Module::train();
  module_->train();
}

void WeightNorm::eval() {
  Module::eval();
  module_->eval();
  computeWeight();
}

void WeightNorm::freeze() {
  Module::freeze();
  module_->freeze();
}

void WeightNorm::setParams(const Variable& var, int position) {
  Module::setParams(var, position);
  if (position == 2) {
    module_->setParams(var, 1);
  } else {
    computeWeight();
  }
}

std::vector<Variable> WeightNorm::forward(const std::vector<Variable>& inputs) {
  FL_API_ENTRY();
  if (train_) computeWeight();
  return module_->forward(inputs);
}

std::string WeightNorm::prettyString() const {
  return detail::concat("WeightNorm (", module_->prettyString(), ", ", dim_, ")");
}

}  // namespace fl
