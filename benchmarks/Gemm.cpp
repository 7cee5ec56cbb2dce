// Times matrix products and batches of small ones, lazy and eager; the limit is the rate of the
// fastest product of 1024.
#include <string>
#include <vector>

#include "benchmarks/Workload.h"
#include "fl/fl.h"

namespace fl::bench {
namespace {

struct Product {
  Dim m, n, k, batch = 1;
};

// Of m x k and k x n, by rows as the peers write them: here, by columns, of n x k and k x m.
Workload product(const Product& p) {
  const auto shape = [&p](Dim rows, Dim columns) {
    return p.batch == 1 ? Shape{rows, columns} : Shape{rows, columns, p.batch};
  };
  const std::string times = p.batch == 1 ? "" : std::to_string(p.batch) + " of ";
  return {.name = "matmul " + times + std::to_string(p.m) + "x" + std::to_string(p.n) + "x" +
                  std::to_string(p.k),
          .make =
              [lhs = shape(p.n, p.k), rhs = shape(p.k, p.m)] {
                const Tensor x = rand(rhs) - 0.5, weights = rand(lhs) - 0.5;
                x.value()->data();
                weights.value()->data();
                return [=] { matmul(weights, x).value()->data(); };
              },
          .operations = 2. * static_cast<double>(p.m) * static_cast<double>(p.n) *
                        static_cast<double>(p.k) * static_cast<double>(p.batch)};
}

std::vector<Workload> products() {
  std::vector<Workload> result;
  for (const Product& each : std::vector<Product>{{1024, 1024, 1024},
                                                  {256, 256, 256},
                                                  {2048, 1024, 1024},
                                                  {1, 512, 512},
                                                  {1, 1024, 1024},
                                                  {4, 1024, 1024},
                                                  {16, 1024, 1024},
                                                  {32, 32, 32},
                                                  {64, 64, 64},
                                                  {128, 128, 128},
                                                  {2, 2, 2, 16384},
                                                  {1, 3, 3, 16384},
                                                  {4, 4, 4, 4096},
                                                  {8, 8, 8, 4096},
                                                  {16, 16, 16, 1024}}) {
    result.push_back(product(each));
  }
  return result;
}

}  // namespace
}  // namespace fl::bench

int main(int argc, char** argv) {
  return fl::bench::compareWorkloads("gemm", "Times matrix products in f32, lazy and eager.", argc,
                                     argv, fl::bench::products);
}
