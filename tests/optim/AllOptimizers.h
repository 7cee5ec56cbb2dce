// One optimizer of each kind, with every part of its rule in use.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "fl/optim/optim.h"

namespace fl::test {

using MakeOptimizer =
    std::function<std::shared_ptr<FirstOrderOptimizer>(const std::vector<Variable>& parameters)>;

template <typename Optimizer, typename... Settings>
MakeOptimizer makes(Settings... settings) {
  return [=](const std::vector<Variable>& parameters) {
    return std::make_shared<Optimizer>(parameters, settings...);
  };
}

inline std::vector<MakeOptimizer> allOptimizers() {
  return {
      makes<SGDOptimizer>(0.05, 0.9, 0.1, true),
      makes<AdamOptimizer>(0.05, 0.8, 0.95, 1e-3, 0.1),
      makes<AdamWOptimizer>(0.05, 0.8, 0.95, 1e-3, 0.1),
      makes<AMSgradOptimizer>(0.05, 0.8, 0.95, 1e-3, 0.1),
      makes<NovogradOptimizer>(0.05, 0.8, 0.95, 1e-3, 0.1),
      makes<LionOptimizer>(0.05, 0.8, 0.95, 0.1),
      makes<NAGOptimizer>(0.05, 0.9, 0.1),
      makes<RMSPropOptimizer>(0.05, 0.9, 1e-3, 0.1, true),
      makes<AdadeltaOptimizer>(0.5, 0.8, 1e-3, 0.1),
      makes<AdagradOptimizer>(0.05, 1e-3, 0.1),
  };
}

// Gives `parameter` the gradient 3 w + 1, of its dtype.
inline void giveGradient(Variable& parameter) {
  parameter.zeroGrad();
  const Tensor& data = parameter.tensor();
  parameter.addGrad(Variable((data * 3 + 1).astype(data.type()), false));
}

}  // namespace fl::test
