// Activation functions as modules.
#pragma once

#include "fl/nn/modules/Module.h"

namespace fl {

class Sigmoid : public CloneableUnaryModule<Sigmoid> {
 public:
  using UnaryModule::forward;
  Variable forward(const Variable& input) override;
  std::string prettyString() const override;

 private:
  FL_SAVE_LOAD_WITH_BASE(UnaryModule)
};

class Tanh : public CloneableUnaryModule<Tanh> {
 public:
  using UnaryModule::forward;
  Variable forward(const Variable& input) override;
  std::string prettyString() const override;

 private:
  FL_SAVE_LOAD_WITH_BASE(UnaryModule)
};

// max(x, 0)
class ReLU : public CloneableUnaryModule<ReLU> {
 public:
  using UnaryModule::forward;
  Variable forward(const Variable& input) override;
  std::string prettyString() const override;

 private:
  FL_SAVE_LOAD_WITH_BASE(UnaryModule)
};

// log(softmax(x)) along dimension `dim`.
class LogSoftmax : public CloneableUnaryModule<LogSoftmax> {
 public:
  explicit LogSoftmax(int dim = 0) : dim_(dim) {}
  using UnaryModule::forward;
  Variable forward(const Variable& input) override;
  std::string prettyString() const override;

 private:
  FL_SAVE_LOAD_WITH_BASE(UnaryModule, dim_)

  int dim_;
};

}  // namespace fl
