// Weight normalisation: Salimans and Kingma, 2016 (arXiv 1602.07868).
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "fl/nn/modules/Module.h"

namespace fl {

// A Linear or a Conv2D with the weight g v / |v|, where the norm is over all dimensions but `dim`.
// Parameters: v, in the place and with the first value of the module's weight; g, one for each
// index of `dim`, with that weight's norm; the module's bias, if it has one.
// Shapes: the wrapped module's
class WeightNorm : public CloneableModule<WeightNorm> {
 public:
  // Takes the module over, or shares it. Throws std::invalid_argument for other modules and for a
  // dimension that the weight does not have.
  template <typename T>
    requires std::is_base_of_v<Module, std::decay_t<T>>
  WeightNorm(T&& module, int dim)
      : WeightNorm(ModulePtr(std::make_shared<std::decay_t<T>>(std::forward<T>(module))), dim) {}
  WeightNorm(ModulePtr module, int dim);
  WeightNorm(const WeightNorm& other);
  WeightNorm& operator=(const WeightNorm& other);
  WeightNorm(WeightNorm&& other) = default;
  WeightNorm& operator=(WeightNorm&& other) = default;

  ModulePtr module() const { return module_; }
  void train() override;
  void eval() override;
  void freeze() override;
  void setParams(const Variable& var, int position) override;
  std::vector<Variable> forward(const std::vector<Variable>& inputs) override;
  std::string prettyString() const override;

 private:
  WeightNorm() = default;
  FL_SAVE_LOAD_WITH_BASE(Module, module_, dim_)
  // All dimensions of the weight but dim_.
  std::vector<int> normDim() const;
  void computeWeight();

  ModulePtr module_;
  int dim_ = 0;
};

}  // namespace fl
