// A backend that computes through MLIR: it records operators, and what is read is a graph of its
// own then. Registered as "mlir", for programs of tests to run on.
#pragma once

#include <cstdint>

#include "fl/tensor/TensorBackend.h"

namespace fl::testing {

struct MlirCounts {
  uint64_t graphs = 0;
  uint64_t nodes = 0;  // of all graphs
};
// So far.
MlirCounts& mlirCounts();

// Registers it, once a program.
void registerMlirBackend();

}  // namespace fl::testing
