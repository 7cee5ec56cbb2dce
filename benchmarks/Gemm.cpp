// Times matrix products, lazy and eager; the limit is the rate of the fastest product of 1024.
#include <array>
#include <string>
#include <vector>

#include "benchmarks/Workload.h"
#include "fl/fl.h"

namespace fl::bench {
namespace {

// Of m x k and k x n, by rows as the peers write them: here, by columns, of n x k and k x m.
Workload product(Dim m, Dim n, Dim k) {
  return {
      .name = "matmul " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
      .make =
          [=] {
            const Tensor x = rand({k, m}) - 0.5, weights = rand({n, k}) - 0.5;
            x.value()->data();
            weights.value()->data();
            return [=] { matmul(weights, x).value()->data(); };
          },
      .operations = 2. * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k)};
}

std::vector<Workload> products() {
  std::vector<Workload> result;
  for (const auto& [m, n, k] : std::vector<std::array<Dim, 3>>{{1024, 1024, 1024},
                                                               {256, 256, 256},
                                                               {2048, 1024, 1024},
                                                               {1, 512, 512},
                                                               {1, 1024, 1024},
                                                               {4, 1024, 1024},
                                                               {16, 1024, 1024},
                                                               {32, 32, 32},
                                                               {64, 64, 64},
                                                               {128, 128, 128}}) {
    result.push_back(product(m, n, k));
  }
  return result;
}

}  // namespace
}  // namespace fl::bench

int main(int argc, char** argv) {
  return fl::bench::compareWorkloads("gemm", "Times matrix products in f32, lazy and eager.", argc,
                                     argv, fl::bench::products);
}
