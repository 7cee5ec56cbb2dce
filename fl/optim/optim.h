// All of fl/optim.
#pragma once

#include "fl/optim/AMSgradOptimizer.h"
#include "fl/optim/AdadeltaOptimizer.h"
#include "fl/optim/AdagradOptimizer.h"
#include "fl/optim/AdamOptimizer.h"
#include "fl/optim/DynamicScaler.h"
#include "fl/optim/LionOptimizer.h"
#include "fl/optim/LrSchedules.h"
#include "fl/optim/NAGOptimizer.h"
#include "fl/optim/NovogradOptimizer.h"
#include "fl/optim/Optimizers.h"
#include "fl/optim/RMSPropOptimizer.h"
#include "fl/optim/SGDOptimizer.h"
#include "fl/optim/Utils.h"
