// Launches that cuBLASLt makes as a product's epilogue: a bias, ReLU, GELU and GELU's gradient.
//
// A launch is one by its kernel's expression, whose numbers are known when it runs: a maximum is
// a ReLU if its other side is 0 then. GELU is fl::gelu's, by tanh, which cuBLASLt's is, too. Other
// launches stay launches. Relies on the planner, which says what follows a call element by element
// (ir::fitsAsEpilogue).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "fl/kernel/Schedule.h"

namespace fl::runtime::cuda {

enum class Activation : uint8_t { None, Relu, Gelu, GeluGradient };

struct Epilogue {
  Activation activation = Activation::None;
  bool bias = false;       // a value for each row
  bool auxiliary = false;  // GELU's input, which is written, or for the gradient read
  auto operator<=>(const Epilogue&) const = default;
};

struct MatchedEpilogue {
  Epilogue form;
  ir::BufferRef result;
  std::optional<ir::BufferRef> bias, auxiliary;
  // Scalars of the kernel, and what they must be.
  std::vector<std::pair<int, Number>> numbers;
};

// Of step `launch`, which follows a product.
std::optional<MatchedEpilogue> matchEpilogue(const ir::Schedule& schedule, size_t launch);

}  // namespace fl::runtime::cuda
