// Times one training step (forward, backward, Adam, reading the loss) of four models, lazy and
// eager, in one run.
#include "benchmarks/TrainSteps.h"

int main(int argc, char** argv) {
  using namespace fl::bench;
  return compareWorkloads(
      "train_step", "Times the training step of four models, lazy and eager.", argc, argv,
      [] { return std::vector{perceptronStep(), mnistStep(), residualStep(), transformerStep()}; });
}
