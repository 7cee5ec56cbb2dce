// Container: a module made of modules; Sequential: one after the other.
//
// A container's parameters are its children's (the same Variables) in the order of add(), between
// any that a subclass puts into params_ itself. Copying clones the children. While a child of a
// Sequential runs, its name is the ModuleScope of what is recorded.
#pragma once

#include <cereal/types/map.hpp>
#include <cereal/types/utility.hpp>
#include <map>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "fl/nn/modules/Module.h"

namespace fl {

class Container : public Module {
 public:
  // Takes the module over: by value (an rvalue), or by pointer, which then shares it. Its
  // parameters become parameters of the container. A null pointer throws std::invalid_argument.
  template <typename T>
  void add(T&& module) {
    static_assert(!std::is_lvalue_reference_v<T>, "add() takes rvalues only: use std::move()");
    append(std::make_shared<std::decay_t<T>>(std::forward<T>(module)));
  }
  template <typename T>
  void add(std::unique_ptr<T> module) {
    append(std::move(module));
  }
  template <typename T>
  void add(std::shared_ptr<T> module) {
    append(std::move(module));
  }

  // Throws std::out_of_range unless 0 <= id < modules().size().
  ModulePtr module(int id) const;
  std::vector<ModulePtr> modules() const;

  // The positions of the parameters that are the container's own and no child's, by the child whose
  // parameters they follow; -1 for those before the first.
  std::unordered_multimap<int, int> getOrphanedParamsIdxMap() const;

  void train() override;
  void eval() override;
  void freeze() override;
  // Also replaces the parameter of the child that owns it.
  void setParams(const Variable& var, int position) override;
  std::string prettyString() const override;

 protected:
  Container() = default;
  Container(const Container& other);
  Container& operator=(const Container& other);
  Container(Container&& other) = default;
  Container& operator=(Container&& other) = default;

  // Removes all modules and parameters.
  virtual void clear();
  // What ModuleScope calls module `id`.
  const std::string& moduleName(size_t id) const { return names_[id]; }

  std::vector<ModulePtr> modules_;

 private:
  friend class cereal::access;
  template <typename Archive>
  void save(Archive& archive, uint32_t) const {
    archive(cereal::base_class<Module>(this), modules_, owners_);
  }
  template <typename Archive>
  void load(Archive& archive, uint32_t) {
    archive(cereal::base_class<Module>(this), modules_, owners_);
    nameModules();
  }

  void append(ModulePtr module);
  void copyFrom(const Container& other);
  static std::string nameOf(const Module& module);
  void nameModules();

  // Of each parameter that belongs to a child: the child and the parameter's position in it.
  std::map<int, std::pair<int, int>> owners_;
  std::vector<std::string> names_;
};

// Copying and cloning for a subclass of Container whose members copy by themselves. Write them out
// where a subclass also holds pointers to its children.
#define FL_BASIC_CONTAINER_CLONING(ContainerClass)             \
  ContainerClass(const ContainerClass& other) = default;       \
  ContainerClass& operator=(const ContainerClass&) = default;  \
  ContainerClass(ContainerClass&& other) = default;            \
  ContainerClass& operator=(ContainerClass&& other) = default; \
  std::unique_ptr<fl::Module> clone() const override {         \
    return std::make_unique<ContainerClass>(*this);            \
  }

// Feeds each module's output to the next one.
// Shapes: the first module's to the last one's
class Sequential : public Container {
 public:
  Sequential() = default;
  FL_BASIC_CONTAINER_CLONING(Sequential)

  std::vector<Variable> forward(const std::vector<Variable>& input) override;
  // Throws std::invalid_argument if the last module gives other than one Variable.
  Variable forward(const Variable& input);
  Variable operator()(const Variable& input);
  using Container::operator();
  std::string prettyString() const override;

 private:
  FL_SAVE_LOAD_WITH_BASE(Container)
};

}  // namespace fl
