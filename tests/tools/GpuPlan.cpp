// Runs a plan of several kernels on a GPU that is none, and prints its result.
#include <iostream>

#include "fl/fl.h"
#include "tests/runtime/cuda/FakeGpu.h"

int main() {
  fl::testing::FakeGpu::install();
  const fl::Tensor x = fl::full({8, 4}, 2.f);
  const fl::Tensor sums = fl::sum(fl::exp(x - 2), {0});
  std::cout << fl::sum(fl::sort(sums, 0) * sums).scalar<float>() << '\n';
}
