// All of fl/optim.
#pragma once

#include "fl/optim/AdamOptimizer.h"
#include "fl/optim/Optimizers.h"
#include "fl/optim/SGDOptimizer.h"
