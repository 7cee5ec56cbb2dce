// Module: a computation with parameters, the base of all layers, losses and models.
//
// A module keeps handles on its parameters; params() gives out the same Variables, so that what an
// optimizer does to them is seen here. Copying a module (copy constructor, assignment, clone())
// copies parameters deeply; moving keeps them. Every forward only records operators.
//
// A layer of one input derives from CloneableUnaryModule<Layer>, names its saved members in
// FL_UNARY_MODULE and defines forward(const Variable&) and prettyString(). Saving: see
// fl/autograd/Serialization.h. The comment above a class ends in a line "Shapes: ..."; all of them
// make docs/modules.md (tools/modules.py).
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
  // Replaces the handle at `position`; a container that holds the module keeps the former one, so
  // call the container's. Throws as param() does.
  virtual void setParams(const Variable& var, int position);
  // Deep copies of the parameters, without gradients.
  virtual std::vector<Variable> copyParams() const;

  // Training mode (the initial one): parameters want gradients, Dropout drops.
  virtual void train();
  // Evaluation mode: parameters want no gradients and lose those they have.
  virtual void eval();
  // Drops the gradients of the parameters.
  void zeroGrad();
  // Evaluation mode for good: train() leaves it there, and no module that shares a parameter makes
  // it want a gradient again (Variable::freeze). Copies are frozen too; what is loaded from a file
  // is not.
  virtual void freeze();

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
  bool frozen_ = false;

 private:
  FL_SAVE_LOAD_DECLARE()
};

template <class Archive>
void Module::save(Archive& archive, uint32_t version) const {
  detail::applyArchive(archive, version, params_, train_);
}
template <class Archive>
void Module::load(Archive& archive, uint32_t version) {
  detail::applyArchive(archive, version, params_, train_);
  frozen_ = false;
}

using ModulePtr = std::shared_ptr<Module>;

// Module::freeze(): its parameters are constants from now on.
inline void freeze(Module& module) { module.freeze(); }
inline void freeze(const ModulePtr& module) { module->freeze(); }

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
template <typename Base, typename Derived>
class Cloneable : public Base {
 public:
  std::unique_ptr<Module> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }

 protected:
  using Base::Base;
};
template <typename Derived>
using CloneableModule = Cloneable<Module, Derived>;
template <typename Derived>
using CloneableUnaryModule = Cloneable<UnaryModule, Derived>;
template <typename Derived>
using CloneableBinaryModule = Cloneable<BinaryModule, Derived>;

}  // namespace fl

// What a module of one input declares, in its public and its private section: the functions it
// overrides, beside the form for vectors, and the members that are saved.
#define FL_UNARY_MODULE(...)                                \
 public:                                                    \
  using fl::UnaryModule::forward;                           \
  fl::Variable forward(const fl::Variable& input) override; \
  std::string prettyString() const override;                \
                                                            \
 private:                                                   \
  FL_SAVE_LOAD_WITH_BASE(fl::UnaryModule __VA_OPT__(, ) __VA_ARGS__)

// The same of a loss.
#define FL_LOSS_MODULE(...)                                                               \
 public:                                                                                  \
  using fl::BinaryModule::forward;                                                        \
  fl::Variable forward(const fl::Variable& inputs, const fl::Variable& targets) override; \
  std::string prettyString() const override;                                              \
                                                                                          \
 private:                                                                                 \
  FL_SAVE_LOAD_WITH_BASE(fl::BinaryModule __VA_OPT__(, ) __VA_ARGS__)
