#include "fl/nn/modules/Loss.h"

#include "fl/autograd/Functions.h"
#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"

CEREAL_REGISTER_TYPE(fl::MeanSquaredError)
CEREAL_REGISTER_TYPE(fl::MeanAbsoluteError)
CEREAL_REGISTER_TYPE(fl::BinaryCrossEntropy)
CEREAL_REGISTER_TYPE(fl::CategoricalCrossEntropy)
CEREAL_REGISTER_TYPE(fl::AdaptiveSoftMaxLoss)

namespace fl {
namespace {

void checkShapes(const char* loss, const Variable& inputs, const char* what,
                 const Variable& others) {
  FL_USER_CHECK(inputs.shape() == others.shape(), loss, ": inputs ",
                typeToString(inputs.type(), inputs.shape()), " and ", what, " ",
                typeToString(others.type(), others.shape()), " differ in shape");
}

Variable difference(const char* loss, const Variable& inputs, const Variable& targets) {
  checkShapes(loss, inputs, "targets", targets);
  return inputs - (isFloating(targets.type()) ? detail::toType(targets, inputs.type()) : targets);
}

}  // namespace

Variable MeanSquaredError::forward(const Variable& inputs, const Variable& targets) {
  FL_API_ENTRY();
  return mean(pow(difference("MeanSquaredError", inputs, targets), 2), {});
}

std::string MeanSquaredError::prettyString() const { return "MeanSquaredError"; }

Variable MeanAbsoluteError::forward(const Variable& inputs, const Variable& targets) {
  FL_API_ENTRY();
  return mean(abs(difference("MeanAbsoluteError", inputs, targets)), {});
}

std::string MeanAbsoluteError::prettyString() const { return "MeanAbsoluteError"; }

Variable BinaryCrossEntropy::forward(const Variable& inputs, const Variable& targets) {
  FL_API_ENTRY();
  checkShapes("BinaryCrossEntropy", inputs, "targets", targets);
  return mean(binaryCrossEntropy(inputs, targets), {});
}

Variable BinaryCrossEntropy::forward(const Variable& inputs, const Variable& targets,
                                     const Variable& weights) {
  FL_API_ENTRY();
  checkShapes("BinaryCrossEntropy", inputs, "targets", targets);
  checkShapes("BinaryCrossEntropy", inputs, "weights", weights);
  const Variable losses = binaryCrossEntropy(inputs, targets);
  return mean(detail::toType(weights, losses.type()) * losses, {});
}

std::string BinaryCrossEntropy::prettyString() const { return "BinaryCrossEntropy"; }

Variable CategoricalCrossEntropy::forward(const Variable& inputs, const Variable& targets) {
  FL_API_ENTRY();
  return categoricalCrossEntropy(inputs, targets, reduction_, ignoreIndex_);
}

std::string CategoricalCrossEntropy::prettyString() const { return "CategoricalCrossEntropy"; }

AdaptiveSoftMaxLoss::AdaptiveSoftMaxLoss(std::shared_ptr<AdaptiveSoftMax> activation,
                                         ReduceMode reduction, int ignoreIndex)
    : activation_(std::move(activation)), reduction_(reduction), ignoreIndex_(ignoreIndex) {
  FL_API_CONSTRUCTOR();
  FL_USER_CHECK(activation_, "AdaptiveSoftMaxLoss: needs an AdaptiveSoftMax");
  params_ = activation_->params();
}

// As in the original, the activation's parameters are the loss's.
AdaptiveSoftMaxLoss::AdaptiveSoftMaxLoss(const AdaptiveSoftMaxLoss& other)
    : CloneableBinaryModule<AdaptiveSoftMaxLoss>(other),
      activation_(std::make_shared<AdaptiveSoftMax>(*other.activation_)),
      reduction_(other.reduction_),
      ignoreIndex_(other.ignoreIndex_) {
  params_ = activation_->params();
}

AdaptiveSoftMaxLoss& AdaptiveSoftMaxLoss::operator=(const AdaptiveSoftMaxLoss& other) {
  return *this = AdaptiveSoftMaxLoss(other);
}

void AdaptiveSoftMaxLoss::setParams(const Variable& var, int position) {
  Module::setParams(var, position);
  activation_->setParams(var, position);
}

Variable AdaptiveSoftMaxLoss::forward(const Variable& inputs, const Variable& targets) {
  FL_API_ENTRY();
  return categoricalCrossEntropy(activation_->forward(inputs), targets, reduction_, ignoreIndex_);
}

std::string AdaptiveSoftMaxLoss::prettyString() const { return activation_->prettyString(); }

}  // namespace fl
