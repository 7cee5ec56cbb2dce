#include "fl/nn/modules/Container.h"

#include <sstream>
#include <stdexcept>
#include <unordered_map>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"
#include "fl/nn/Serialization.h"

CEREAL_REGISTER_TYPE(fl::Sequential)

namespace fl {

void Container::append(ModulePtr module) {
  FL_API_ENTRY();
  FL_USER_CHECK(module, "Container: cannot add a null module");
  for (int i = 0; i < module->numParamTensors(); ++i) {
    owners_[static_cast<int>(params_.size())] = {static_cast<int>(modules_.size()), i};
    params_.push_back(module->param(i));
  }
  if (frozen_) module->freeze();
  modules_.push_back(std::move(module));
  names_.push_back(nameOf(*modules_.back()));
}

std::string Container::nameOf(const Module& module) {
  const std::string text = module.prettyString();
  return text.substr(0, text.find('\n'));
}

void Container::nameModules() {
  names_.clear();
  for (const ModulePtr& module : modules_) names_.push_back(nameOf(*module));
}

Container::Container(const Container& other) : Module() { copyFrom(other); }

Container& Container::operator=(const Container& other) {
  if (this != &other) copyFrom(other);
  return *this;
}

// A module that was added twice is one module in the copy too.
void Container::copyFrom(const Container& other) {
  std::unordered_map<const Module*, ModulePtr> clones;
  std::vector<ModulePtr> modules;
  for (const ModulePtr& module : other.modules_) {
    ModulePtr& clone = clones[module.get()];
    if (!clone) clone = module->clone();
    modules.push_back(clone);
  }
  std::vector<Variable> params;
  for (int i = 0; i < other.numParamTensors(); ++i) {
    const auto owner = other.owners_.find(i);
    params.push_back(owner == other.owners_.end()
                         ? other.params_[i].copy()
                         : modules[owner->second.first]->param(owner->second.second));
  }
  train_ = other.train_;
  frozen_ = other.frozen_;
  owners_ = other.owners_;
  modules_ = std::move(modules);
  params_ = std::move(params);
  nameModules();
}

void Container::clear() {
  modules_.clear();
  params_.clear();
  owners_.clear();
  names_.clear();
}

ModulePtr Container::module(int id) const {
  FL_API_ENTRY();
  if (id < 0 || id >= static_cast<int>(modules_.size())) {
    throw std::out_of_range(detail::withCallSite(
        detail::concat("Container: no module ", id, " among ", modules_.size())));
  }
  return modules_[id];
}

std::vector<ModulePtr> Container::modules() const { return modules_; }

std::unordered_multimap<int, int> Container::getOrphanedParamsIdxMap() const {
  std::unordered_multimap<int, int> orphans;
  int child = -1;
  for (int i = 0; i < numParamTensors(); ++i) {
    const auto owner = owners_.find(i);
    if (owner == owners_.end()) {
      orphans.emplace(child, i);
    } else {
      child = owner->second.first;
    }
  }
  return orphans;
}

void Container::train() {
  Module::train();
  for (const ModulePtr& module : modules_) module->train();
}

void Container::eval() {
  Module::eval();
  for (const ModulePtr& module : modules_) module->eval();
}

void Container::freeze() {
  Module::freeze();
  for (const ModulePtr& module : modules_) module->freeze();
}

void Container::setParams(const Variable& var, int position) {
  Module::setParams(var, position);
  const auto owner = owners_.find(position);
  if (owner != owners_.end()) modules_[owner->second.first]->setParams(var, owner->second.second);
}

std::string Container::prettyString() const {
  std::ostringstream text;
  for (size_t i = 0; i < modules_.size(); ++i) {
    text << "\n\t(" << i << "): " << modules_[i]->prettyString();
  }
  return text.str();
}

std::vector<Variable> Sequential::forward(const std::vector<Variable>& input) {
  FL_API_ENTRY();
  std::vector<Variable> output = input;
  for (size_t i = 0; i < modules_.size(); ++i) {
    const ModuleScope scope(moduleName(i));
    output = modules_[i]->forward(output);
  }
  return output;
}

Variable Sequential::forward(const Variable& input) {
  FL_API_ENTRY();
  const std::vector<Variable> output = forward(std::vector<Variable>{input});
  FL_USER_CHECK(output.size() == 1, "Sequential: the last module gives ", output.size(),
                " Variables, not one");
  return output[0];
}

Variable Sequential::operator()(const Variable& input) {
  FL_API_ENTRY();
  return forward(input);
}

std::string Sequential::prettyString() const {
  std::ostringstream text;
  text << "Sequential [input";
  for (size_t i = 0; i < modules_.size(); ++i) text << " -> (" << i << ")";
  text << " -> output]" << Container::prettyString();
  return text.str();
}

}  // namespace fl
