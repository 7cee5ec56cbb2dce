#include "fl/nn/modules/Module.h"

#include <stdexcept>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {
namespace {

void checkPosition(int position, size_t count) {
  if (position < 0 || position >= static_cast<int>(count)) {
    throw std::out_of_range(
        detail::withCallSite(detail::concat("Module: no parameter ", position, " among ", count)));
  }
}

}  // namespace

Module::Module(const std::vector<Variable>& params) : params_(params) {}

Module::Module(const Module& other)
    : params_(other.Module::copyParams()), train_(other.train_), frozen_(other.frozen_) {}

Module& Module::operator=(const Module& other) {
  params_ = other.Module::copyParams();
  train_ = other.train_;
  frozen_ = other.frozen_;
  return *this;
}

std::vector<Variable> Module::params() const { return params_; }

int Module::numParamTensors() const { return static_cast<int>(params_.size()); }

Variable Module::param(int position) const {
  FL_API_ENTRY();
  checkPosition(position, params_.size());
  return params_[position];
}

void Module::setParams(const Variable& var, int position) {
  FL_API_ENTRY();
  checkPosition(position, params_.size());
  params_[position] = var;
  if (frozen_) params_[position].freeze();
}

std::vector<Variable> Module::copyParams() const {
  std::vector<Variable> copies;
  for (const Variable& param : params_) copies.push_back(param.copy());
  return copies;
}

void Module::train() {
  if (frozen_) {
    return freeze();  // and with it what became a parameter since
  }
  train_ = true;
  for (Variable& param : params_) param.setCalcGrad(true);
}

void Module::eval() {
  train_ = false;
  for (Variable& param : params_) param.setCalcGrad(false);
}

void Module::zeroGrad() {
  for (Variable& param : params_) param.zeroGrad();
}

void Module::freeze() {
  frozen_ = true;
  eval();
  for (Variable& param : params_) param.freeze();
}

std::vector<Variable> Module::operator()(const std::vector<Variable>& inputs) {
  FL_API_ENTRY();
  return forward(inputs);
}

std::vector<Variable> UnaryModule::forward(const std::vector<Variable>& inputs) {
  FL_API_ENTRY();
  FL_USER_CHECK(inputs.size() == 1, prettyString(), ": takes one input, not ", inputs.size());
  return {forward(inputs[0])};
}

Variable UnaryModule::operator()(const Variable& input) {
  FL_API_ENTRY();
  return forward(input);
}

std::vector<Variable> BinaryModule::forward(const std::vector<Variable>& inputs) {
  FL_API_ENTRY();
  FL_USER_CHECK(inputs.size() == 2, prettyString(), ": takes two inputs, not ", inputs.size());
  return {forward(inputs[0], inputs[1])};
}

Variable BinaryModule::operator()(const Variable& input1, const Variable& input2) {
  FL_API_ENTRY();
  return forward(input1, input2);
}

}  // namespace fl
