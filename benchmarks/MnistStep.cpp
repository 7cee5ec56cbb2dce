// Times one training step of apps/mnist, lazy and eager, in one run: for the digits at batch 32 and
// for random images of 28x28 at batch 64.
#include "benchmarks/TrainSteps.h"

int main(int argc, char** argv) {
  return fl::bench::compareWorkloads(
      "mnist_step", "Times the training step of apps/mnist, lazy and eager.", argc, argv,
      [] { return std::vector{fl::bench::digitsStep(), fl::bench::mnistStep()}; });
}
