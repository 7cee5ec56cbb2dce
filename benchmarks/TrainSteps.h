// Training steps as workloads: forward, backward, the update of all parameters, and reading the
// loss. Data is random, made beforehand, and the same in each step.
#pragma once

#include <span>

#include "benchmarks/Workload.h"

namespace fl::bench {

// Whether every step is recorded, or what fl::compile() makes of one; those are named "compiled
// ...".
enum class Stepping { Recorded, Compiled };

// 784-512-512-10, ReLU, Adam.
Workload perceptronStep(int batch = 128, Stepping stepping = Stepping::Recorded);
// The model of apps/mnist for 28x28, batch 64, Adam; and on its digits, 8x8, batch 32.
Workload mnistStep(Stepping stepping = Stepping::Recorded);
Workload digitsStep();
// A convolution 3x3 of 3 to 32 channels, three stages of two residual blocks with batch norm, 32,
// 64, 128 channels; 3x32x32, batch 32, Adam.
Workload residualStep(Stepping stepping = Stepping::Recorded);
// The shapes of ResNet-50 (K. He et al., "Deep residual learning for image recognition", 2016):
// four stages of 3, 4, 6 and 3 bottlenecks; 3x224x224, 1000 classes, batch 4, Adam. `image`, a
// multiple of 32, and `channels`, those of the first convolution, make it smaller.
Workload deepResidualStep(int image = 224, int channels = 64,
                          Stepping stepping = Stepping::Recorded);
// Pre-norm, width 256, 4 heads, length 128, vocabulary 1000, batch 8, Adam.
Workload transformerStep(int layers = 4, int width = 256, int length = 128,
                         Stepping stepping = Stepping::Recorded);

// Batches up to 4096, primes among them: the first of each class of kernels, and others. Kernels
// differ by the batch, which is 1, up to 16 or larger, and by whether the caches hold what they
// read and write.
constexpr int kFirstBatches[] = {1, 2, 17, 4096};
constexpr int kOtherBatches[] = {3,   5,   7,   8,    11,   13,   16,   19,  23,
                                 31,  32,  37,  61,   64,   97,   127,  128, 251,
                                 256, 509, 512, 1021, 1024, 2039, 2048, 4093};
// Three perceptronStep()s of each.
void trainBatches(std::span<const int> batches);

}  // namespace fl::bench
