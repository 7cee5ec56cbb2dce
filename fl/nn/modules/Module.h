// Module: a computation with parameters, the base of all layers, losses and models.
//
// A module keeps handles on its parameters; params() gives out the same Variables, so that what an
// optimizer does to them is seen here. Copying a module (copy constructor, assignment, clone())
// copies parameters deeply; moving keeps them. Every forward only records operators.
//
// A layer of one input derives from UnaryModule and overrides forward(const Variable&), clone() and
// prettyString(); CloneableUnaryModule<Layer> supplies clone(). Write `using UnaryModule::forward;`
// beside the override to keep the form for vectors. Saving: see fl/autograd/Serialization.h.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fl/autograd/Serialization.h"
#include "fl/autograd/Variable.h"

namespace fl {

class Module {
 public:
  virtual ~Module() = default;

  std::vector<Variable> params() const;
  int numParamTensors() const;
  // Throws std::out_of_range unless 0 <= position < numParamTensors().
  Variable param(int position) const;
  // Replaces the handle at `position`. Throws as param() does.
  virtual void setParams(const Variable& var, int position);
  // Deep copies of the parameters, without gradients.
  virtual std::vector<Variable> copyParams() const;

  // Training mode (the initial one): parameters want gradients, Dropout drops.
  virtual void train();
  // Evaluation mode: parameters want no gradients and lose those they have.
  virtual void eval();
  // Drops the gradients of the parameters.
  void zeroGrad();

  virtual std::vector<Variable> forward(const std::vector<Variable>& inputs) = 0;
  std::vector<Variable> operator()(const std::vector<Variable>& inputs);

  virtual std::unique_ptr<Module> clone() const = 0;
  // Name and sizes for people, one line a layer.
  virtual std::string prettyString() const = 0;

 protected:
  Module() = default;
  explicit Module(const std::vector<Variable>& params);
  Module(const Module& other);
  Module& operator=(const Module& other);
  Module(Module&& other) = default;
  Module& operator=(Module&& other) = default;

  std::vector<Variable> params_;
  bool train_ = true;

 private:
  FL_SAVE_LOAD(params_, train_)
};

using ModulePtr = std::shared_ptr<Module>;

// One Variable in, one out. The form for vectors throws std::invalid_argument for other counts.
class UnaryModule : public Module {
 public:
  std::vector<Variable> forward(const std::vector<Variable>& inputs) override;
  virtual Variable forward(const Variable& input) = 0;
  Variable operator()(const Variable& input);
  using Module::operator();

 protected:
  using Module::Module;

 private:
  FL_SAVE_LOAD_WITH_BASE(Module)
};

// Two Variables in, one out: losses.
class BinaryModule : public Module {
 public:
  std::vector<Variable> forward(const std::vector<Variable>& inputs) override;
  virtual Variable forward(const Variable& input1, const Variable& input2) = 0;
  Variable operator()(const Variable& input1, const Variable& input2);
  using Module::operator();

 protected:
  using Module::Module;

 private:
  FL_SAVE_LOAD_WITH_BASE(Module)
};

// Supplies clone() by Derived's copy constructor.
template <typename Derived>
class CloneableUnaryModule : public UnaryModule {
 public:
  std::unique_ptr<Module> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }

 protected:
  using UnaryModule::UnaryModule;
};

template <typename Derived>
class CloneableBinaryModule : public BinaryModule {
 public:
  std::unique_ptr<Module> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }

 protected:
  using BinaryModule::BinaryModule;
};

}  // namespace fl
