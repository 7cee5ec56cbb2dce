// A model of what compiling a kernel costs: here that of a compiler which takes long for what is
// hard to compute, so that chains of it are cut. No result changes.
#include <algorithm>
#include <iostream>
#include <vector>

#include "fl/fl.h"
#include "fl/research.h"

// In milliseconds, of which a kernel may take ten.
double cost(const fl::ir::Graph& graph, const std::vector<fl::ir::ValueId>& nodes, size_t loads) {
  const auto isLong = [&](fl::ir::ValueId id) {
    return fl::ir::opInfo(graph.node(id).op).ulp >= 1;  // exp(), tanh(), no addition
  };
  return 4.0 * std::ranges::count_if(nodes, isLong) + 0.1 * static_cast<double>(loads);
}

// Four hard operators and as many easy ones, and how many kernels they took.
float chain(const fl::Tensor& x, const char* when) {
  const auto before = fl::runtime::counters().kernelLaunches.load();
  fl::Tensor y = x;
  for (int i = 0; i < 4; ++i) {
    y = fl::tanh(y) * x;
  }
  const float result = y.toHostVector<float>()[0];
  std::cout << when << ": " << fl::runtime::counters().kernelLaunches - before << " kernels, "
            << result << '\n';
  return result;
}

int main() {
  fl::Tensor x = fl::rand({1 << 16}) + 0.5;
  fl::eval(x), fl::sync();
  const float ours = chain(x, "without the model");
  fl::codegen::costModels().add({.name = "slow_compiler", .milliseconds = cost});
  return ours == chain(x, "with it") ? 0 : 1;
}
