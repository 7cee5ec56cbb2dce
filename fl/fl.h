// Everything a program needs: tensors, gradients, modules, optimizers, datasets and meters,
// functions compiled whole, profiles, memory managers, the number of threads and the memory budget.
#pragma once

#include "fl/autograd/autograd.h"
#include "fl/data/data.h"
#include "fl/host/ThreadPool.h"
#include "fl/lazy/Compile.h"
#include "fl/meter/meters.h"
#include "fl/nn/nn.h"
#include "fl/optim/optim.h"
#include "fl/profile/Profile.h"
#include "fl/runtime/CachingMemoryManager.h"
#include "fl/runtime/DefaultMemoryManager.h"
#include "fl/runtime/MemoryManager.h"
#include "fl/runtime/MemoryManagerInstaller.h"
#include "fl/tensor/tensor.h"

namespace fl {

// The threads that operators compute with, the caller's own included; FL_NUM_THREADS, or one for
// each processor, until it is set. May be changed at any time: results do not depend on it.
using host::getNumThreads;
using host::setNumThreads;

using runtime::getMemoryBudget;
using runtime::setMemoryBudget;

}  // namespace fl
