// A rule about fusion: nothing that takes long to compute shares a kernel with a reduction. It
// changes how many kernels there are, and no result.
#include <algorithm>
#include <iostream>
#include <vector>

#include "fl/fl.h"
#include "fl/research.h"

bool isReduction(const fl::ir::Node& node) {
  return fl::ir::opKind(node.op) == fl::ir::Kind::Reduce;
}
bool isLong(const fl::ir::Node& node) { return fl::ir::opInfo(node.op).ulp >= 1; }

bool keepsLongOnesApart(const fl::ir::Graph& graph, const std::vector<fl::ir::ValueId>& nodes) {
  const auto any = [&](bool (*is)(const fl::ir::Node&)) {
    return std::ranges::any_of(nodes, [&](fl::ir::ValueId id) { return is(graph.node(id)); });
  };
  return !any(isReduction) ||
         !any([](const fl::ir::Node& node) { return isLong(node) && !isReduction(node); });
}

// The mean of a function over a million numbers, and how many kernels it took.
float mean(const fl::Tensor& x, const char* when) {
  const auto before = fl::runtime::counters().kernelLaunches.load();
  const float result = fl::sum(fl::tanh(x) * x).scalar<float>();
  std::cout << when << ": " << fl::runtime::counters().kernelLaunches - before << " kernels, "
            << result << '\n';
  return result;
}

int main() {
  fl::Tensor x = fl::rand({1 << 20}) - 0.5;
  fl::eval(x), fl::sync();
  const float fused = mean(x, "without the rule");
  fl::codegen::fusionRules().add({.name = "long_apart", .allows = keepsLongOnesApart});
  const float apart = mean(x, "with it");
  fl::codegen::fusionRules().remove("long_apart");
  return fused == apart && fused == mean(x, "without it again") ? 0 : 1;
}
