// Everything a program needs: tensors, gradients, modules, optimizers, datasets and meters, functions
// compiled whole, and the number of threads.
#pragma once

#include "fl/autograd/autograd.h"
#include "fl/data/data.h"
#include "fl/host/ThreadPool.h"
#include "fl/lazy/Compile.h"
#include "fl/meter/meters.h"
#include "fl/nn/nn.h"
#include "fl/optim/optim.h"
#include "fl/tensor/tensor.h"

namespace fl {

// The threads that operators compute with, the caller's own included; FL_NUM_THREADS, or one for
// each processor, until it is set. May be changed at any time: results do not depend on it.
using host::getNumThreads;
using host::setNumThreads;

}  // namespace fl
